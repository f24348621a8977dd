-- Makes the guestbook's table, its first rows and the role that reads them.
-- Running it again changes nothing; psql reads the role from the environment.
\set ON_ERROR_STOP on
\getenv reader READER_USER
\getenv password READER_PASSWORD

BEGIN;
-- Keep a statement that goes wrong, and with it the password, out of the log.
SET LOCAL log_min_error_statement = panic;
SET LOCAL client_min_messages = warning;
-- Two runs at once take turns.
SELECT pg_advisory_xact_lock(7001) \g /dev/null

CREATE TABLE IF NOT EXISTS entries (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  author  text NOT NULL CHECK (author <> ''),
  message text NOT NULL CHECK (message <> ''),
  created timestamptz NOT NULL DEFAULT now(),
  UNIQUE (author, message)
);

INSERT INTO entries (author, message, created)
SELECT v.author, v.message, v.created
FROM (VALUES
  ('Ada', 'The slipway is greased.', timestamptz '2026-01-05 09:00+00'),
  ('Grace', 'Hull, rudder and crew are on board.', timestamptz '2026-01-05 09:30+00'),
  ('Katherine', 'She floats!', timestamptz '2026-01-05 10:00+00')
) AS v (author, message, created)
WHERE NOT EXISTS (
  SELECT FROM entries e WHERE e.author = v.author AND e.message = v.message
);

SELECT format('CREATE ROLE %I', :'reader')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'reader') \gexec
ALTER ROLE :"reader" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE CONNECTION LIMIT 20 PASSWORD :'password';
GRANT USAGE ON SCHEMA public TO :"reader";
GRANT SELECT ON entries TO :"reader";
COMMIT;

SELECT count(*) || ' entries' FROM entries;

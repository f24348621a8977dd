-- Makes the guestbook's tables, its first rows and the role that reads them. Tables that are
-- there stay as they are, whichever release made them: migrations change those.
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

SELECT to_regclass('entries') IS NULL AS fresh \gset
\if :fresh
CREATE TABLE authors (
  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE CHECK (name <> '')
);
CREATE TABLE entries (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  author_id bigint NOT NULL REFERENCES authors,
  message   text NOT NULL CHECK (message <> ''),
  created   timestamptz NOT NULL DEFAULT now(),
  UNIQUE (author_id, message)
);
INSERT INTO authors (name) VALUES ('Ada'), ('Grace'), ('Katherine');
INSERT INTO entries (author_id, message, created)
SELECT a.id, v.message, v.created
FROM (VALUES
  ('Ada', 'The slipway is greased.', timestamptz '2026-01-05 09:00+00'),
  ('Grace', 'Hull, rudder and crew are on board.', timestamptz '2026-01-05 09:30+00'),
  ('Katherine', 'She floats!', timestamptz '2026-01-05 10:00+00')
) AS v (author, message, created) JOIN authors a ON a.name = v.author
ORDER BY v.created;
\endif

SELECT format('CREATE ROLE %I', :'reader')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'reader') \gexec
ALTER ROLE :"reader" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE CONNECTION LIMIT 20 PASSWORD :'password';
GRANT USAGE ON SCHEMA public TO :"reader";
GRANT SELECT ON entries TO :"reader";
SELECT to_regclass('authors') IS NOT NULL AS apart \gset
\if :apart
GRANT SELECT ON authors TO :"reader";
\endif
COMMIT;

SELECT count(*) || ' entries' FROM entries;

-- Who has signed in.
CREATE TABLE sign_ins (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subject text NOT NULL CHECK (subject <> ''),
  name    text NOT NULL,
  email   text NOT NULL,
  at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sign_ins_latest ON sign_ins (at DESC, id DESC);

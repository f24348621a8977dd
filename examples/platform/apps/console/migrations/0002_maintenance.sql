-- While this has a row, the console calls itself unhealthy and gives the reason.
CREATE TABLE maintenance (
  reason text NOT NULL CHECK (reason <> ''),
  since  timestamptz NOT NULL DEFAULT now()
);

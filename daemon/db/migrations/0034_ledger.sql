-- The ledger of credits: every effect on them is a row, and named, so that none is entered twice. What is spent is a row a day.
CREATE TABLE credit_ledger (
  entry_id     TEXT PRIMARY KEY,
  org_id       TEXT NOT NULL,
  at           TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('grant', 'withdrawal', 'spend')),
  -- Millionths of a credit; what is spent or taken back is below 0.
  amount_micro INTEGER NOT NULL,
  reason       TEXT NOT NULL,
  effect       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX credit_ledger_by_effect ON credit_ledger (org_id, effect);
CREATE INDEX credit_ledger_by_org ON credit_ledger (org_id, entry_id);
-- What there was before there was a ledger. An organization has one row of each, so its own id makes theirs.
INSERT INTO credit_ledger SELECT 'cre_0' || substr(org_id, 6), org_id, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'grant', granted * 1000000,
  'granted before there was a ledger', 'carried:grant' FROM org_credits WHERE granted IS NOT NULL AND granted <> 0;
INSERT INTO credit_ledger SELECT 'cre_00' || substr(org_id, 7), org_id, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'spend', -used_micro,
  'used before there was a ledger', 'carried:spend' FROM org_credits WHERE used_micro <> 0;

-- What an unanswered call has begun.
ALTER TABLE idempotency ADD COLUMN begun TEXT;

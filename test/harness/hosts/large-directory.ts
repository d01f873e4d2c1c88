/** SQL that fills a directory with rows, as daemons would have over days. */

const ORGS = 100;

/** In `changes` changes after change `after`: organizations, `keys` keys of theirs, and as many rows that were deleted. */
export function fillDirectory(keys: number, changes: number, after = 0): string {
  // The organizations were changed last, so that by changes keys come before them.
  return `
    INSERT INTO roomd.rows SELECT 'api_keys', json_build_array('key_' || i)::text, json_build_object('key_id', 'key_' || i,
        'org_id', 'org_' || i % ${ORGS}, 'kind', 'api', 'name', 'a key', 'key_sha256', md5(i::text) || md5((i + 1)::text),
        'key_prefix', 'key-1234', 'scopes', '["rooms:read"]', 'created_at', '2026-01-01T00:00:00.000Z', 'revoked_at', null,
        'created_by_type', 'key', 'created_by_id', 'key_0', 'ended_with_maker', 0)::jsonb, ${after} + 1 + i % ${changes}
      FROM generate_series(1, ${keys}) i;
    INSERT INTO roomd.rows SELECT 'placements', json_build_array('rom_' || i)::text, NULL, ${after} + 1 + i % ${changes}
      FROM generate_series(1, ${keys}) i;
    INSERT INTO roomd.rows SELECT 'orgs', json_build_array('org_' || i)::text, json_build_object('org_id', 'org_' || i, 'name', 'org ' || i,
        'plan', 'free', 'created_at', '2026-01-01T00:00:00.000Z', 'plan_by', 'operator')::jsonb, ${after + changes}
      FROM generate_series(0, ${ORGS - 1}) i;
    INSERT INTO roomd.changes SELECT ${after} + i, 'change ' || ${after} + i, 'other', now() - interval '3 days'
      FROM generate_series(1, ${changes}) i;
    UPDATE roomd.cluster SET seq = ${after + changes}; ANALYZE roomd.rows`;
}

/**
 * The statements of daemon/cluster as the model of PostgreSQL carries them out. Each yields the locks that it waits for, and returns its
 * answer. A statement that is not here fails: add it, and the test that compares the model with a server shows whether it is the same.
 */
import type { QueryResult } from "../../../daemon/cluster/session.ts";
import { type Row, ServerError, type View } from "./state.ts";

export type Steps = Generator<string, QueryResult>;
/** A statement that waits for nothing returns its answer. */
type Statement = (view: View, values: readonly unknown[], text: string) => Steps | QueryResult;

const CLUSTER = "cluster";
const leaseLock = (hostId: unknown) => `lease ${hostId}`;
const FORGET_MS = 7 * 86_400_000;

const selected = (...rows: Record<string, unknown>[]): QueryResult => ({ command: "SELECT", rows });
const done = (command: string, ...rows: Record<string, unknown>[]): QueryResult => ({ command, rows });

interface Change extends Row {
  seq: number;
  change_id: string;
  host_id: string;
  at: number;
}
interface SharedRow extends Row {
  tbl: string;
  key: string;
  row: Row | null;
  seq: number;
}
interface Lease extends Row {
  host_id: string;
  incarnation: string;
  version: string;
  lease_until: number;
  load: unknown;
  run: string;
  place: string;
  beat: number;
  beat_id: string;
}

const clusterOf = (view: View) => view.get("cluster", CLUSTER) as (Row & { seq: number }) | undefined;
const changesOf = (view: View) =>
  view
    .all("changes")
    .map(([, row]) => row as Change)
    .sort((a, b) => a.seq - b.seq);
const rowsOf = (view: View) =>
  view
    .all("rows")
    .map(([, row]) => row as SharedRow)
    .sort((a, b) => a.seq - b.seq);
const leaseOf = (view: View, hostId: unknown) => view.get("leases", String(hostId)) as Lease | undefined;
const newestLease = (view: View, hostId: unknown) => view.newest("leases", String(hostId)) as Lease | undefined;
const nowOf = (view: View) => view.transaction.startedAtMs;

/** $3 and $4 are the run and the place. */
const mayTake = (view: View, lease: Lease, [, , run, place]: readonly unknown[]) =>
  lease.run === run || lease.place === place || lease.lease_until <= nowOf(view);

function* lockCluster(view: View): Generator<string, Row | undefined> {
  yield CLUSTER;
  return view.newest("cluster", CLUSTER);
}

/** UPDATE of a lease: it is found in the snapshot, waited for, and compared once more. */
function* updateLease(view: View, hostId: unknown, matches: (lease: Lease) => boolean, set: (lease: Lease) => object) {
  const seen = leaseOf(view, hostId);
  if (!seen || !matches(seen)) return null;
  yield leaseLock(hostId);
  const newest = newestLease(view, hostId);
  if (!newest || !matches(newest)) return null;
  const next = { ...newest, ...set(newest) };
  view.put("leases", String(hostId), next);
  return next as Lease;
}

function* deleteLease(view: View, hostId: unknown): Steps {
  if (leaseOf(view, hostId)) {
    yield leaseLock(hostId);
    view.put("leases", String(hostId), null);
  }
  return done("DELETE");
}

const nameOf = ({ tbl, row }: { tbl: string; row: Row | null }) =>
  tbl === "placements" && row !== null ? `${row.org_id} ${row.room_id}` : null;

function writeRows(view: View, given: unknown, seq: unknown): void {
  const rows = JSON.parse(String(given)) as { tbl: string; key: string; row: string | null }[];
  const names = new Map(rowsOf(view).flatMap((row) => (nameOf(row) === null ? [] : [[nameOf(row), row.key]])));
  for (const { tbl, key, row } of rows) {
    const id = `${tbl} ${key}`;
    const before = view.get("rows", id) as SharedRow | undefined;
    const next = row === null ? null : { ...(before?.row ?? {}), ...(JSON.parse(row) as Row) };
    const was = before ? nameOf(before) : null;
    if (was !== null) names.delete(was);
    const name = nameOf({ tbl, row: next });
    const other = name === null ? undefined : names.get(name);
    if (other !== undefined && other !== key)
      throw new ServerError("ERROR", "23505", "duplicate key value violates unique constraint rows_room_names");
    if (name !== null) names.set(name, key);
    view.put("rows", id, { tbl, key, row: next, seq: Number(seq) });
  }
}

const timeText = (ms: number) => new Date(ms).toISOString();

function* beat(view: View, values: readonly unknown[], text: string): Steps {
  const [host_id, incarnation, run, place, version, load, seconds, number, mine, beat_id] = values;
  const isConditional = text.includes("CASE WHEN $8");
  const isMine = (lease: Lease) =>
    !isConditional ||
    (number === null
      ? mayTake(view, lease, values)
      : lease.beat < Number(number) || (lease.run === run && (mine as string[]).includes(lease.beat_id)));
  // The other columns are of before this statement.
  const known = view.all("leases").map(([, row]) => row as Lease);
  const own = known.find((lease) => lease.host_id === host_id && lease.incarnation === incarnation);
  const taken = yield* updateLease(
    view,
    host_id,
    (lease) => lease.incarnation === incarnation && isMine(lease),
    (lease) => ({
      ...{ run, place, version, load: JSON.parse(String(load)) as unknown, beat_id },
      lease_until: nowOf(view) + Number(seconds) * 1000,
      beat: Math.max(lease.beat + 1, Number(number ?? 0) + 1, nowOf(view)),
    }),
  );
  const isOthers = own !== undefined && number === null && !mayTake(view, own, values);
  return selected(
    ...known.map((lease) => ({
      ...{ host_id: lease.host_id, version: lease.version, load: lease.load },
      is_alive: lease.lease_until > nowOf(view) || lease.host_id === host_id,
      database_ms: nowOf(view),
      alive_until: timeText(lease.lease_until),
      is_member: taken !== null,
      beat: taken?.beat ?? null,
      others_until: isOthers ? timeText(own.lease_until) : null,
    })),
  );
}

/** Text in the order of a database of the C locale. */
const byText = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);
const textOf = (row: Row | null) => row && JSON.stringify(row);

function headOf(view: View, [seq, change_id, cluster_id, seen, seen_id]: readonly unknown[]): QueryResult {
  const cluster = clusterOf(view);
  if (!cluster) return selected();
  const changes = changesOf(view);
  return selected({
    ...{ seq: cluster.seq, is_ours: cluster.cluster_id === cluster_id },
    change_id: changes.find((change) => change.seq === cluster.seq)?.change_id ?? null,
    is_known: changes.some((change) => change.seq === Number(seq) && change.change_id === change_id),
    is_seen_known: seen === null || changes.some((change) => change.seq === seen && change.change_id === seen_id),
    has_earlier: changes.some((change) => change.seq <= Number(seq)),
  });
}

function newest(view: View): QueryResult {
  const cluster = clusterOf(view);
  if (!cluster) return selected();
  const last = changesOf(view).find((change) => change.seq === cluster.seq);
  return selected({ seq: cluster.seq, change_id: last?.change_id ?? null });
}

const hasChange = (view: View, [seq, change_id]: readonly unknown[]): QueryResult =>
  selected(...(changesOf(view).some((each) => each.seq === Number(seq) && each.change_id === change_id) ? [{}] : []));

function changesBetween(view: View, [after, upTo, host_id, most]: readonly unknown[]): QueryResult {
  const found = changesOf(view).filter(({ seq }) => seq > Number(after) && seq <= Number(upTo));
  return selected(
    ...found
      .slice(0, Number(most))
      .map(({ seq, change_id, host_id: by }) => ({ seq, change_id, is_own: by === host_id })),
  );
}

const byPosition = (a: SharedRow, b: SharedRow) => a.seq - b.seq || byText(a.tbl, b.tbl) || byText(a.key, b.key);

function rowsBetween(view: View, [seq, tbl, key, upTo]: readonly unknown[], text: string): QueryResult {
  const after = { seq: Number(seq), tbl: String(tbl), key: String(key), row: null };
  const found = rowsOf(view).filter((row) => byPosition(row, after) > 0 && row.seq <= Number(upTo));
  const page = found.sort(byPosition).slice(0, limitOf(text));
  return selected(...page.map(({ tbl, key, row, seq }) => ({ tbl, key, row: textOf(row), seq })));
}

const limitOf = (text: string) => Number(/ LIMIT (\d+)/.exec(text)?.[1]);

function pageOfTable(view: View, [tbl, after]: readonly unknown[], text: string): QueryResult {
  const found = rowsOf(view).filter((row) => row.tbl === tbl && byText(row.key, String(after)) > 0);
  const page = found.sort((a, b) => byText(a.key, b.key)).slice(0, limitOf(text));
  const rows = page.filter(({ row }) => row !== null);
  return selected({
    last: page.at(-1)?.key ?? null,
    rows: rows.length === 0 ? null : rows.map(({ key, row }) => [key, textOf(row)]),
  });
}

function missingKeys(view: View, [tbl, keys]: readonly unknown[]): QueryResult {
  const has = (key: string) => (view.get("rows", `${tbl} ${key}`) as SharedRow | undefined)?.row != null;
  const missing = (JSON.parse(String(keys)) as string[]).filter((key) => !has(key));
  return selected(...missing.map((key) => ({ key })));
}

function rowsNamed(view: View, [names]: readonly unknown[]): QueryResult {
  const found = (JSON.parse(String(names)) as { tbl: string; key: string }[]).flatMap(({ tbl, key }) => {
    const row = (view.get("rows", `${tbl} ${key}`) as SharedRow | undefined)?.row ?? null;
    return row === null ? [] : [{ tbl, key, row: textOf(row) }];
  });
  return selected(...found);
}

function orgsNamed(view: View, [given]: readonly unknown[]): QueryResult {
  const names = new Set(JSON.parse(String(given)) as string[]);
  const found = rowsOf(view).flatMap(({ tbl, row }) => (tbl === "orgs" && row !== null ? [String(row.name)] : []));
  return selected(...found.filter((name) => names.has(name)).map((name) => ({ name })));
}

function whoFreed(view: View, [key]: readonly unknown[]): QueryResult {
  const placed = view.get("rows", `placements ${key}`) as SharedRow | undefined;
  const change = placed?.row === null ? changesOf(view).find(({ seq }) => seq === placed.seq) : undefined;
  if (!change) return selected();
  const host = view.get("rows", `hosts ${JSON.stringify([change.host_id])}`) as SharedRow | undefined;
  const is_removal = host?.seq === change.seq && host.row?.state === "gone";
  return selected({ host_id: change.host_id, is_removal });
}

function forgetChanges(view: View, text: string): QueryResult {
  const last = clusterOf(view)?.seq ?? 0;
  const oldest = changesOf(view).filter(({ seq }) => seq < last);
  const old = oldest.slice(0, limitOf(text)).filter(({ at }) => at < nowOf(view) - FORGET_MS);
  for (const { seq } of old) view.put("changes", String(seq), null);
  return selected({ count: old.length });
}

function forgetRows(view: View, text: string): QueryResult {
  const oldest = changesOf(view)[0]?.seq ?? 0;
  const old = rowsOf(view).filter(({ row, seq }) => row === null && seq < oldest);
  const forgotten = old.slice(0, limitOf(text));
  for (const { tbl, key } of forgotten) view.put("rows", `${tbl} ${key}`, null);
  return selected({ count: forgotten.length });
}

interface Call extends Row {
  key_id: string;
  method: string;
  path: string;
  idempotency_key: string;
}

function callsIn(given: unknown): { name: string; call: Call }[] {
  return (JSON.parse(String(given)) as Call[]).map(({ key_id, method, path, idempotency_key }) => {
    const call = { key_id, method, path, idempotency_key };
    return { name: JSON.stringify(Object.values(call)), call };
  });
}

/** Returns the calls that were noted before, and notes the others. */
function noteCalls(view: View, given: unknown, host_id: unknown): QueryResult {
  const earlier: Row[] = [];
  for (const { name, call } of callsIn(given)) {
    const recorded = view.get("done_calls", name);
    if (recorded) earlier.push({ ...call, host_id: recorded.host_id });
    else view.put("done_calls", name, { ...call, host_id, at: nowOf(view) });
  }
  return selected(...earlier);
}

function forgetCalls(view: View, seconds: unknown): QueryResult {
  const old = view.all("done_calls").filter(([, { at }]) => Number(at) < nowOf(view) - Number(seconds) * 1000);
  for (const [name] of old) view.put("done_calls", name, null);
  return selected({ forgotten: old.length });
}

const SETTINGS = { fsync: "on", full_page_writes: "on", synchronous_standby_names: "" };

/** By their beginning, or another part, with single spaces. */
const STATEMENTS: readonly (readonly [RegExp, Statement])[] = [
  [/pg_is_in_recovery/, () => selected({ standby: false, version: 170000, ...SETTINGS })],
  [/^SELECT 1$/, () => selected({ "?column?": 1 })],
  [/ AS is_missing$/, () => selected({ is_missing: false })],
  [
    /^SELECT cluster_id = \$1 AND EXISTS .* FROM roomd\.cluster FOR UPDATE$/,
    function* (view, [cluster_id, host_id, incarnation]) {
      // The lease is of the snapshot; the row that is locked is the newest.
      const isThere = leaseOf(view, host_id)?.incarnation === incarnation;
      const cluster = yield* lockCluster(view);
      return selected(...(cluster ? [{ is_member: cluster.cluster_id === cluster_id && isThere }] : []));
    },
  ],
  [
    /^SELECT FROM roomd\.cluster FOR UPDATE$/,
    function* (view) {
      const cluster = yield* lockCluster(view);
      return selected(...(cluster ? [{}] : []));
    },
  ],
  [/^SELECT seq FROM roomd\.cluster$/, (view) => selected(...view.all("cluster").map(([, { seq }]) => ({ seq })))],
  [/^SELECT seq::float8 AS seq, cluster_id = \$3 AS is_ours, /, headOf],
  [/^SELECT seq::float8 AS seq, \(SELECT change_id FROM roomd\.changes WHERE changes\.seq = cluster\.seq\)/, newest],
  [/^SELECT FROM roomd\.changes WHERE seq = \$1 AND change_id = \$2$/, hasChange],
  [/^SELECT seq::float8 AS seq, change_id, host_id = \$3 AS is_own FROM roomd\.changes /, changesBetween],
  [/^SELECT tbl, key, "row"::text AS row, seq::float8 AS seq FROM roomd\.rows /, rowsBetween],
  [/^SELECT max\(key\) AS last, json_agg/, pageOfTable],
  [/^SELECT given\.key FROM json_array_elements_text\(\$2::json\)/, missingKeys],
  [/^SELECT tbl, key, "row"::text AS row FROM roomd\.rows JOIN json_to_recordset/, rowsNamed],
  [/^SELECT "row" ->> 'name' AS name FROM roomd\.rows WHERE tbl = 'orgs' /, orgsNamed],
  [
    /^INSERT INTO roomd\.rows/,
    (view, [rows, seq]) => {
      writeRows(view, rows, seq);
      return done("INSERT");
    },
  ],
  [
    /^INSERT INTO roomd\.changes/,
    (view, [seq, change_id, host_id]) => {
      if (view.get("changes", String(seq)))
        throw new ServerError("ERROR", "23505", "duplicate key value: changes_pkey");
      view.put("changes", String(seq), { seq: Number(seq), change_id, host_id, at: nowOf(view) });
      return done("INSERT");
    },
  ],
  [
    /^UPDATE roomd\.cluster SET seq = \$1$/,
    function* (view, [seq]) {
      const cluster = yield* lockCluster(view);
      if (cluster) view.put("cluster", CLUSTER, { ...cluster, seq: Number(seq) });
      return done("UPDATE");
    },
  ],
  [
    /^NOTIFY (\w+)$/,
    (view) => {
      view.transaction.notifies = "roomd";
      return done("NOTIFY");
    },
  ],
  [
    /^DELETE FROM roomd\.leases WHERE host_id = \$1::json/,
    (view, [key]) => deleteLease(view, (JSON.parse(String(key)) as unknown[])[0]),
  ],
  [/^DELETE FROM roomd\.leases WHERE host_id = \$1$/, (view, [hostId]) => deleteLease(view, hostId)],
  [
    /^SELECT FROM roomd\.changes WHERE change_id = \$1$/,
    (view, [change_id]) =>
      selected(
        ...changesOf(view)
          .filter((change) => change.change_id === change_id)
          .map(() => ({})),
      ),
  ],
  [
    /^WITH given AS .* noted AS \( ?INSERT INTO roomd\.done_calls/,
    (view, [given, host]) => noteCalls(view, given, host),
  ],
  [
    /^DELETE FROM roomd\.done_calls WHERE \(.*\) IN/,
    (view, [given]) => {
      for (const { name } of callsIn(given)) view.put("done_calls", name, null);
      return done("DELETE");
    },
  ],
  [/^WITH old AS \(SELECT ctid FROM roomd\.done_calls/, (view, [seconds]) => forgetCalls(view, seconds)],
  [/^WITH mine AS \( UPDATE roomd\.leases/, beat],
  [
    /^UPDATE roomd\.leases SET lease_until = now\(\) WHERE host_id = \$1 AND incarnation = \$2 AND run = \$3$/,
    function* (view, [host_id, incarnation, run]) {
      const isIt = (lease: Lease) => lease.incarnation === incarnation && lease.run === run;
      yield* updateLease(view, host_id, isIt, () => ({ lease_until: nowOf(view) }));
      return done("UPDATE");
    },
  ],
  [
    /^UPDATE roomd\.leases SET run = \$3, place = \$4 WHERE .* RETURNING host_id$/,
    function* (view, values) {
      const [host_id, incarnation, run, place] = values;
      const isIt = (lease: Lease) => lease.incarnation === incarnation && mayTake(view, lease, values);
      const taken = yield* updateLease(view, host_id, isIt, () => ({ run, place }));
      return done("UPDATE", ...(taken ? [{ host_id }] : []));
    },
  ],
  [
    /^SELECT FROM roomd\.leases WHERE host_id = \$1 AND incarnation = \$2( AND run = \$3)?$/,
    (view, [host_id, incarnation, run]) => {
      const lease = leaseOf(view, host_id);
      const isIt = lease?.incarnation === incarnation && (run === undefined || lease?.run === run);
      return selected(...(isIt ? [{}] : []));
    },
  ],
  [/^SELECT changes\.host_id, EXISTS .* AS is_removal FROM roomd\.rows AS placed /, whoFreed],
  [/^WITH oldest AS \(SELECT seq, at FROM roomd\.changes /, (view, _, text) => forgetChanges(view, text)],
  [/^WITH old AS \(SELECT tbl, key FROM roomd\.rows /, (view, _, text) => forgetRows(view, text)],
];

const known = new Map<string, Statement>();

export function statementOf(sql: string): Statement {
  const found = known.get(sql) ?? STATEMENTS.find(([pattern]) => pattern.test(sql))?.[1];
  if (!found) throw new Error(`test/harness/simulation/statements.ts has no such statement: ${sql}`);
  known.set(sql, found);
  return found;
}

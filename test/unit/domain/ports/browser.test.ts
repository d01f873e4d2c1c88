/** The call that returns a browser's URL: the exposed port, its duration, its audit records, and no effect without a browser. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Caller, trialCall } from "../../../../daemon/core/call/operation.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { listAudit } from "../../../../daemon/domain/audit/index.ts";
import type { PortDeps } from "../../../../daemon/domain/ports/deps.ts";
import { makePorts, type Ports, Traffic } from "../../../../daemon/domain/ports/index.ts";
import { allPorts, insertPort, movePortEnd } from "../../../../daemon/domain/ports/store.ts";
import type { PortRow } from "../../../../daemon/domain/ports/table.ts";
import { Channel } from "../../../../shared/agent-protocol/messages.ts";
import { BROWSER_PORT } from "../../../../shared/api/browser.ts";
import { until } from "../../../harness/guests.ts";
import { PlayedAgent } from "../executions/agent-fixture.ts";

const CALLER = { org_id: "org_1", key_id: "kid_1", name: "mine", scopes: ["ports:write"], expires_at: null };
const ANSWER = JSON.stringify({ webSocketDebuggerUrl: "ws://127.0.0.1:9222/devtools/browser/abc" });

let home: string;
let connection: Connection;
let database: Database;
let ports: Ports;
let listens: boolean;
let state: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-browser-"));
  connection = openConnection(":memory:");
  migrate(connection);
  // Ports of a sandbox that need not be there.
  connection.execute("PRAGMA foreign_keys = OFF");
  database = makeDatabase(connection);
  [listens, state] = [true, "running"];
  const agent = new PlayedAgent((stream) => {
    if (!listens) return stream.fail("port_not_listening", "nothing listens");
    stream.say({ type: "connected" });
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${ANSWER.length}\r\nconnection: close\r\n\r\n`;
    void stream.write(Channel.stdout, Buffer.from(head + ANSWER)).then(() => stream.finish(null));
  });
  const room = { room_uid: "rom_1", room_id: "r", state: "active" };
  const never = () => new Promise(() => {});
  ports = makePorts({
    isMakerGood: () => true,
    holdMaker: () => () => {},
    database,
    log: makeLog("error", () => {}),
    sandboxes: {
      find: () => ({ room, row: { sandbox_id: "sbx_1", agent_id: "a", org_id: "org_1", state } }),
      withGuest: (_: string, work: (link: unknown) => unknown) => work(agent.link),
      use: (_: string, work: () => unknown) => work(),
      stopped: never,
      ended: never,
    },
    keyFile: join(home, "key"),
    urls: () => ({ base_url: "http://127.0.0.1:8080", domain: null }),
    traffic: new Traffic(),
    rate: { perSecond: 0, burst: 0 },
  } as unknown as PortDeps);
});
afterEach(async () => {
  ports.stop();
  await database.close();
  rmSync(home, { recursive: true });
});

async function ask() {
  const bound = ports.operations.find(({ operation }) => operation.name === "browser_get");
  const call = trialCall(CALLER as unknown as Caller);
  Object.assign(call.audit, { room_uid: "rom_1", agent_id: "a" });
  const done = await bound?.run(call, {}, bound.find(call, {}), undefined as never);
  return done?.body as { cdp_url: string; expires_at: string };
}

const records = () =>
  listAudit(database.queries, { org_id: "org_1", order: "asc", limit: 10 }).map(({ event, agent_id, details }) => ({
    ...{ event, agent_id, ...JSON.parse(details) },
  }));
const rowOf = (): PortRow | undefined => allPorts(database.queries)[0];
const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();

test("its exposure is in the audit log like any other, with or without audited reads", async () => {
  const { cdp_url, expires_at } = await ask();
  expect(cdp_url).toMatch(/^ws:\/\/127\.0\.0\.1:8080\/p\/\w+\/devtools\/browser\/abc$/);
  expect(rowOf()).toMatchObject({ port: BROWSER_PORT, visibility: "private", expires_at, ends_with: "kid_1" });
  const exposed = { event: "port.exposed", agent_id: "a", port: BROWSER_PORT, visibility: "private", expires_at };
  expect(records()).toEqual([exposed]);
  expect((await ask()).expires_at).toBe(expires_at);
  expect(records()).toHaveLength(1);
});

test("without a listening browser no port is exposed, and no record is written", async () => {
  listens = false;
  await expect(ask()).rejects.toMatchObject({ code: "port_not_listening" });
  expect([rowOf(), records()]).toEqual([undefined, []]);
  [listens, state] = [true, "failed"];
  await expect(ask()).rejects.toMatchObject({ code: "invalid_state" });
  expect([rowOf(), records()]).toEqual([undefined, []]);
});

test("a repeated call within the hour extends it to an hour under the same URL", async () => {
  const { cdp_url } = await ask();
  const label = String(rowOf()?.label);
  await database.commit((queries) => movePortEnd(queries, label, inMinutes(30)));
  const again = await ask();
  expect(again.cdp_url).toBe(cdp_url);
  expect(again.expires_at > inMinutes(59)).toBe(true);
  expect(rowOf()).toMatchObject({ label, expires_at: again.expires_at });
  expect(records().map(({ event, expires_at }) => [event, expires_at === again.expires_at])).toEqual([
    ["port.exposed", false],
    ["port.exposed", true],
  ]);
});

test("a port extended just before its end stays, and one not extended ends", async () => {
  await ask();
  const row = rowOf() as PortRow;
  ports.stop();
  const soon = new Date(Date.now() + 300).toISOString();
  await database.commit((queries) => movePortEnd(queries, row.label, soon));
  ports.recover();
  // By another way than the call, so that the timer that is set finds it moved.
  await database.commit((queries) => movePortEnd(queries, row.label, new Date(Date.now() + 900).toISOString()));
  await Bun.sleep(600);
  expect(rowOf()?.label).toBe(row.label);
  await until("the exposure has expired", () => rowOf() === undefined);
  expect(records().at(-1)).toMatchObject({ event: "port.expired" });
});

test.each([
  ["public", { visibility: "public" }],
  ["of a name of its own", { wish: "mine" }],
  ["exposed without an end", { expires_at: null }],
])("a port that is %s is unchanged", async (_, own) => {
  const row = {
    ...{ label: "l", sandbox_id: "sbx_1", port: BROWSER_PORT, visibility: "private", wish: null, org_id: "org_1" },
    ...{
      room_uid: "rom_1",
      agent_id: "a",
      created_at: inMinutes(-1),
      expires_at: inMinutes(5),
      ends_with: null,
    },
    ...own,
  } as PortRow;
  await database.commit((queries) => insertPort(queries, row));
  expect((await ask()).expires_at).toBe(row.expires_at as string);
  expect([rowOf(), records()]).toEqual([row, []]);
});

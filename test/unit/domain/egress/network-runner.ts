/** A guest's connections through all of egress, to a server beside it in a separate network namespace; it runs until it is killed. */
import { writeFileSync } from "node:fs";
import { nextTurn } from "../../../../daemon/core/concurrency/next-turn.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { makeEgress } from "../../../../daemon/domain/egress/index.ts";
import type { Consumer } from "../../../../daemon/domain/orgs/index.ts";
import { isKept } from "../../../../daemon/domain/sandboxes/index.ts";
import { Channel } from "../../../../shared/agent-protocol/messages.ts";
import type { OrgId, RoomUid, SandboxId } from "../../../../shared/ids.ts";
import { insertRow } from "../../../harness/durability/insert-row.ts";
import { joined } from "../../../protocol/wire.ts";

const [databaseFile = "", hostsFile = "", address = ""] = process.argv.slice(2);
const PORT = 7000;

const say = (line: object) => writeFileSync(1, `${JSON.stringify(line)}\n`);

const connection = openConnection(databaseFile);
migrate(connection);
const database = makeDatabase(connection);
const sandbox = {
  sandbox_id: "sbx_1" as SandboxId,
  org_id: "org_1" as OrgId,
  room_uid: "rom_1" as RoomUid,
  ...{ room_id: "r", agent_id: "worker", created_at: "2026-01-31T12:00:00.000Z" },
  place: { org_id: "org_1", room_uid: "rom_1", agent_id: "worker", key_id: "kid_1" } as Consumer,
};
insertRow(connection, database, "orgs", { org_id: "org_1" });
insertRow(connection, database, "rooms", { room_uid: "rom_1", org_id: "org_1", state: "active" });
const row = { room_uid: "rom_1", org_id: "org_1", state: "running", egress_mode: "none", guest_cid: 9100 };
insertRow(connection, database, "sandboxes", { ...row, sandbox_id: "sbx_1" });

const egress = makeEgress({
  ...{ database, log: makeLog("error", () => {}), meter: { count: () => {} }, isKept, hostsFile },
  ...{ privateRanges: `${address}/32`, mibPerSecond: 0, onDenied: () => {} },
});
const requests = egress.serve(sandbox, [`echo.example:${PORT}`, address]);
const { guest } = joined({ host: { onOpen: (stream, request) => requests(stream, request as object) } });
Bun.listen({ hostname: address, port: PORT, socket: { data: (socket, bytes) => void socket.end(bytes) } });

async function send(host: string, port: number, bytes: string): Promise<void> {
  const stream = guest.link.open({ method: "egress_connect", host, port } as { method: string });
  const read = (async () => {
    for await (const _ of stream.read(Channel.stdout));
  })();
  await stream.write(Channel.stdin, Buffer.from(bytes));
  stream.endChannel(Channel.stdin);
  await Promise.allSettled([read, stream.finished]);
}

await send("echo.example", PORT, "hello");
await send("echo.example", PORT, "again");
await send(address, PORT, "hi");
await send("evil.example", 443, "secret");
say(egress.networkOf(sandbox));
database.onCommit(async () => {
  if (database.queries.all("SELECT 1 FROM egress_networks").length === 0) return;
  // The write may take more destinations in this turn.
  await nextTurn();
  await send("late.example", 443, "secret");
  say(egress.networkOf(sandbox));
});

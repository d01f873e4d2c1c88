/** Connections of the SSH door that end, whatever their client does. */
import { expect, test } from "vitest";
import { until } from "../../harness/guests.ts";
import { type Door, exec, flood, openDoor } from "./ssh-door.ts";

/** More than the system keeps for a client that does not read. */
const CHANNELS = 12;

/** Resolves once no more is accepted: all buffers in between are full. */
async function untilFull(door: Door): Promise<void> {
  let before = -1;
  await until("the output is stalled", async () => {
    const taken = door.begun.reduce((sum, each) => sum + each.taken, 0);
    const isSame = taken === before && taken > 0;
    before = taken;
    await Bun.sleep(100);
    return isSame;
  });
}

async function unread(door: Door) {
  door.output = flood;
  const { client, socket } = await door.login();
  await Promise.all(Array.from({ length: CHANNELS }, () => exec(client, "yes")));
  socket.pause();
  await untilFull(door);
  return client;
}

test("a client that does not read is disconnected, and its further requests have no effect", async () => {
  await using door = await openDoor();
  const client = await unread(door);
  const [session] = door.kept;
  session?.cut("the key was revoked");
  expect(door.begun.map(({ hungUp }) => hungUp)).toEqual(Array.from({ length: CHANNELS }, () => 1));
  void exec(client, "too late").catch(() => {});
  await session?.over;
  expect(door.begun).toHaveLength(CHANNELS);
});

test("the service stops although a client does not read", async () => {
  await using door = await openDoor();
  await unread(door);
  await door.server.stop();
  await until("all commands are hung up", () => door.begun.every(({ hungUp }) => hungUp === 1));
});

test("an organization's connections take no slots of others", async () => {
  await using door = await openDoor({ max_connections: 3, max_connections_per_org: 2 });
  const [first] = [await door.login("a"), await door.login("a")];
  const { socket } = await door.login("a");
  await new Promise((resolve) => socket.once("close", resolve));
  await door.login("b");
  first?.client.end();
  await door.kept[0]?.over;
  const again = await door.login("a");
  await exec(again.client, "true");
});

test("a connection above the limit is closed, and the other continues", async () => {
  await using door = await openDoor({ max_connections: 1 });
  const first = await door.login();
  const { socket } = await door.login();
  await new Promise((resolve) => socket.once("close", resolve));
  expect(door.kept).toHaveLength(2);
  await door.kept[1]?.over;
  await exec(first.client, "true");
});

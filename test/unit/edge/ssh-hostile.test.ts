/** SSH clients that violate the protocol, or delay it: no other client is affected. */
import type { Socket } from "node:net";
import { Client, type ClientChannel } from "ssh2";
import { expect, test } from "vitest";
import { LONG, until } from "../../harness/guests.ts";
import { type Door, exec, flood, holdInput, openDoor } from "./ssh-door.ts";

const PACKET_BYTES = 32 * 1024;
const ENDLESS_WINDOW = 0xffff_ffff;

interface Confirmed {
  recipient: number;
  sender: number;
}

/** The client's own half of the protocol, in which a test can lie. */
interface Inside {
  _protocol: {
    _kexinit: unknown;
    _handlers: {
      CHANNEL_OPEN_CONFIRMATION(inside: unknown, confirmed: Confirmed): void;
      CHANNEL_CLOSE(inside: unknown, recipient: number): void;
    };
    parse(bytes: Uint8Array): void;
    rekey(): void;
    ping(): void;
    session(channel: number, window: number, packetBytes: number): void;
    directTcpip(channel: number, window: number, packetBytes: number, to: object): void;
    exec(channel: number, command: string, wantReply: boolean): void;
    channelClose(channel: number): void;
  };
}
const insideOf = (client: Client) => (client as unknown as Inside)._protocol;

function openWith(client: Client, window: number, packetBytes: number): void {
  const inside = insideOf(client);
  const { session, directTcpip } = inside;
  inside.session = (channel) => session.call(inside, channel, window, packetBytes);
  inside.directTcpip = (channel, _, __, to) => directTcpip.call(inside, channel, window, packetBytes, to);
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => (socket.destroyed ? resolve() : socket.once("close", () => resolve())));
}

/** Resolves to the value at which a measure stops changing, once it is more than zero. */
async function atRest(description: string, measure: () => number): Promise<number> {
  let before = -1;
  return await until(description, async () => {
    const now = measure();
    const isSame = now === before && now > 0;
    before = now;
    await Bun.sleep(200);
    return isSame && now;
  });
}

const takenOf = (door: Door) => door.begun.reduce((sum, { taken }) => sum + taken, 0);

test.each([0, 1])(
  "a channel with packets of %i bytes ends its connection, and delays no other client",
  async (bytes) => {
    await using door = await openDoor();
    door.output = flood;
    for (const open of [
      (client: Client) => exec(client, "yes"),
      (client: Client) => new Promise((resolve) => client.forwardOut("127.0.0.1", 1, "127.0.0.1", 80, resolve)),
    ]) {
      const { client, socket } = await door.login();
      openWith(client, ENDLESS_WINDOW, bytes);
      void open(client).catch(() => {});
      await closed(socket);
    }
    expect(takenOf(door)).toBe(0);
    const { client } = await door.login();
    await exec(client, "true");
  },
);

test("commands wait during a key exchange, also for a client that never finishes it", async () => {
  await using door = await openDoor();
  door.output = flood;
  const { client } = await door.login();
  openWith(client, ENDLESS_WINDOW, PACKET_BYTES);
  (await exec(client, "yes")).resume();
  await until("output is sent", () => takenOf(door) > 0);
  const inside = insideOf(client);
  inside.rekey();
  inside.parse = () => {};
  await atRest("the command waits", () => takenOf(door));
  const { client: other } = await door.login();
  await exec(other, "true");
});

test.each(["diffie-hellman-group16-sha512", "diffie-hellman-group18-sha512"] as const)(
  "%s is not available",
  async (kex) => {
    await using door = await openDoor();
    const client = new Client();
    const failed = new Promise<Error>((resolve) => client.once("error", resolve));
    const target = { host: "127.0.0.1", port: door.server.port, username: "worker-1@r", password: "a" };
    client.connect({ ...target, algorithms: { kex: [kex] } });
    expect(String(await failed)).toContain("no matching key exchange");
  },
);

test("output continues after a key exchange in the middle of it", async () => {
  await using door = await openDoor();
  door.output = flood;
  const { client } = await door.login();
  let read = 0;
  (await exec(client, "yes")).on("data", (bytes: Buffer) => {
    read += bytes.byteLength;
  });
  for (let round = 0; round < 3; round++) {
    const inside = insideOf(client);
    inside.rekey();
    await until("the key exchange is complete", () => inside._kexinit === undefined);
    const before = read;
    await until("another megabyte is received", () => read > before + 1_000_000);
  }
});

test("a client that sends requests without reading the replies is no longer read", async (context) => {
  if (!LONG) return context.skip("it takes half a million questions: ROOMD_TEST_LONG=1 asks them");
  await using door = await openDoor();
  const { client, socket } = await door.login();
  socket.pause();
  // More than the system keeps on the way there and back.
  for (let index = 0; index < 500_000; index++) insideOf(client).ping();
  await atRest("no more is read", () => socket.writableLength);
  socket.resume();
  await until("the write buffer is empty", () => socket.writableLength === 0);
  await exec(client, "true");
});

test("unread data is limited in packets too", async () => {
  await using door = await openDoor();
  const guest = holdInput(door);
  const { client, socket } = await door.login();
  const channel = await exec(client, "cat");
  const packets = 40_000;
  for (let sent = 0; sent < packets; sent++) channel.write(Buffer.of(sent & 255));
  const late = exec(client, "late");
  await until("the write buffer is empty", () => socket.writableLength === 0);
  await exec((await door.login()).client, "true");
  // It is queued behind data that the guest does not accept.
  expect(door.begun).toHaveLength(2);
  guest.take();
  await late;
  expect(guest.taken).toBe(packets);
});

test("a channel closed by its client ends, although earlier data is still unread", async () => {
  await using door = await openDoor();
  door.output = flood;
  door.input = () => Promise.withResolvers<void>().promise;
  const { client } = await door.login();
  const channel: ClientChannel = await exec(client, "yes");
  channel.write(Buffer.alloc(1_000_000));
  await until("output is sent", () => takenOf(door) > 0);
  (channel as ClientChannel & { close(): void }).close();
  await until("the command is hung up", () => door.begun[0]?.hungUp === 1);
  await exec(client, "true");
});

test("a session closed before any request in it is confirmed and forgotten", async () => {
  await using door = await openDoor({ max_channels: 2 });
  const { client } = await door.login();
  const inside = insideOf(client);
  const answered: number[] = [];
  const before = { ...inside._handlers };
  inside._handlers.CHANNEL_OPEN_CONFIRMATION = (_, { sender }) => inside.channelClose(sender);
  inside._handlers.CHANNEL_CLOSE = (_, recipient) => void answered.push(recipient);
  for (let round = 0; round < 20; round++) {
    inside.session(1000 + round, ENDLESS_WINDOW, PACKET_BYTES);
    await until("the request is answered", () => answered.length > round);
  }
  expect(answered).toEqual(Array.from({ length: 20 }, (_, round) => 1000 + round));
  Object.assign(inside._handlers, before);
  await exec(client, "true");
});

test("one request starts in a session", async () => {
  await using door = await openDoor();
  const { client } = await door.login();
  const channel = (await exec(client, "true")) as ClientChannel & { outgoing: { id: number } };
  insideOf(client).exec(channel.outgoing.id, "again", true);
  await exec(client, "other");
  expect(door.begun).toHaveLength(2);
});

test("a client that only queries the login methods is disconnected in the end", async () => {
  await using door = await openDoor();
  const client = new Client();
  let requestCount = 0;
  const ended = new Promise<void>((resolve) => client.once("close", () => resolve()));
  client.on("error", () => {});
  client.connect({
    host: "127.0.0.1",
    port: door.server.port,
    username: "worker-1@r",
    authHandler: () => {
      requestCount++;
      return { type: "none", username: "worker-1@r" };
    },
  });
  await ended;
  expect(requestCount).toBeGreaterThan(50);
  expect(requestCount).toBeLessThan(200);
});

/**
 * All uses of ssh2's internals, which have no stability guarantee: they are named here and nowhere else. ssh2 is pinned to 1.17; before the
 * gateway opens, one connection in memory verifies that all of them exist and behave as expected.
 */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { Client, type ClientChannel, type Connection, Server, type ServerChannel, type Session } from "ssh2";
import { within } from "../../core/concurrency/published.ts";
import { describeError } from "../../core/service-error.ts";
import { offerHybrid } from "./hybrid-exchange.ts";
import { checkMlkem, HYBRID_KEX } from "./mlkem.ts";

/** A channel with its ssh2 internals. */
export interface Channel {
  readonly readableLength: number;
  readonly _readableState: { buffer: { length: number } };
  readonly incoming: { state: string };
  readonly outgoing: { packetSize: number };
  once(event: "close", listener: () => void): unknown;
}

interface InsideConnection {
  _sock: Socket;
  _protocol: {
    _kexinit: unknown;
    channelClose(id: number): void;
    channelOpenFail(id: number, code: number, reason: string): void;
  };
  _chanMgr: { remove(id: number): void };
}

interface InsideSession {
  _channel: unknown;
  _chanInfo: { incoming: { id: number }; outgoing: { id: number } };
}

/** A channel's fields for a waiting write, which ssh2 would send again when its other stream waits. */
const WAITING = ["_chunk", "_chunkcb", "_chunkErr", "_chunkcbErr"] as const;
const NOTHING_WAITS = Object.fromEntries(WAITING.map((name) => [name, undefined]));

const insideOf = (client: Connection) => client as unknown as InsideConnection;

export const socketOf = (client: Connection): Socket => insideOf(client)._sock;

/** Whether a key exchange is in progress: then nothing else is sent, and ssh2 buffers all writes. */
export const isExchangingKeys = (client: Connection): boolean => insideOf(client)._protocol._kexinit !== undefined;

/** Ends a session that its client has closed: ssh2 would keep one without a command, and never confirm the close. */
export function forgetSession(client: Connection, session: Session): void {
  const { _channel, _chanInfo } = session as unknown as InsideSession;
  if (_channel) return;
  insideOf(client)._chanMgr.remove(_chanInfo.incoming.id);
  insideOf(client)._protocol.channelClose(_chanInfo.outgoing.id);
}

/** Marks a session as no channel to be closed: ssh2 recognizes that by the class name, which a build may change. */
export function markNoChannel(session: Session): void {
  Object.assign(session, { incoming: { state: "closed" } });
}

/** Reason code for a channel that could not be opened (RFC 4254, 5.1). */
const CONNECT_FAILED = 2;

/** Refuses a channel with a reason that the client shows, because `reject` itself gives none. */
export function refuseOpening(client: Connection, reject: () => void, reason: string): void {
  const protocol = insideOf(client)._protocol;
  const { channelOpenFail } = protocol;
  // `reject` frees the channel's slot, and sends its refusal through this function during the call.
  protocol.channelOpenFail = (id) => channelOpenFail.call(protocol, id, CONNECT_FAILED, reason);
  try {
    reject();
  } finally {
    protocol.channelOpenFail = channelOpenFail;
  }
}

/** Whether the client has closed the channel, which emits `close` only after all of its bytes were consumed. */
export const isClosed = ({ incoming }: Channel): boolean => incoming.state === "closed";

/** Number of packets with unread bytes. */
export const unreadPackets = ({ _readableState }: Channel): number => _readableState.buffer.length;

export const packetSizeOf = ({ outgoing }: Channel): number => outgoing.packetSize;

export function forgetWaiting(channel: ServerChannel): void {
  Object.assign(channel, NOTHING_WAITS);
}

const DEADLINE_MS = 60_000;

/** The first internal that does not behave as expected, in a sentence; null if all do. `tamper` changes the server's end for a test. */
export async function probeInside(
  hostKey: string,
  tamper: (client: Connection) => void = () => {},
): Promise<string | null> {
  const [near, far] = pair();
  const client = new Client();
  const tried = Promise.withResolvers<void>();
  const server = new Server({ hostKeys: [hostKey] }, (connection) => {
    offerHybrid(connection);
    connection.on("handshake", ({ kex }) => {
      if ((kex as string) !== HYBRID_KEX) tried.reject(new Error(`${HYBRID_KEX} is missing or has changed`));
    });
    connection.on("error", tried.reject);
    connection.on("authentication", (context) => context.accept());
    connection.on("ready", () => void tryConnection(connection, client, far, tamper).then(tried.resolve, tried.reject));
  });
  client.on("error", tried.reject);
  try {
    checkMlkem();
    // It needs a socket's address fields.
    server.injectSocket(Object.assign(far, { remoteAddress: "", remotePort: 0, remoteFamily: "" }) as never);
    client.connect({ sock: near, username: "probe" });
    offerHybrid(client);
    await within(tried.promise, DEADLINE_MS, "a connection in memory");
    return null;
  } catch (error) {
    return `The SSH library differs from the one that this roomd was built for: ${describeError(error)}.`;
  } finally {
    client.destroy();
    near.destroy();
    far.destroy();
  }
}

/** Two ends of a line. Written data arrives in a separate turn, as from a network: ssh2 responds within a read. */
function pair(): [Duplex, Duplex] {
  const end = (other: () => Duplex) =>
    new Duplex({
      read: () => {},
      write: (bytes, _encoding, done) => {
        setImmediate(() => {
          if (!other().destroyed) other().push(bytes);
          done();
        });
      },
    });
  const near: Duplex = end(() => far);
  const far: Duplex = end(() => near);
  return [near, far];
}

async function tryConnection(
  connection: Connection,
  client: Client,
  socket: unknown,
  tamper: (client: Connection) => void,
): Promise<void> {
  tamper(connection);
  expect(socketOf(connection) === socket, "_sock");
  expect(!isExchangingKeys(connection), "_kexinit after an exchange of keys");
  const { promise: opened, resolve } = Promise.withResolvers<ServerChannel>();
  connection.on("session", (accept) => {
    const session = accept();
    markNoChannel(session);
    expect(typeof (session as unknown as InsideSession)._chanInfo?.incoming?.id === "number", "_chanInfo");
    expect(!(session as unknown as InsideSession)._channel, "_channel before there is one");
    session.on("exec", (take) => {
      const channel = take();
      expect((session as unknown as InsideSession)._channel === channel, "_channel");
      resolve(channel);
    });
  });
  const clientChannel = await new Promise<ClientChannel>((done, fail) =>
    client.exec("probe", (error, channel) => (error ? fail(error) : done(channel))),
  );
  const given = await opened;
  const channel = given as unknown as Channel;
  for (const name of WAITING) expect(name in given, name);
  expect(packetSizeOf(channel) > 0 && !isClosed(channel), "incoming and outgoing of a channel");
  const readable = new Promise((done) => given.once("readable", done));
  clientChannel.write("probe");
  await readable;
  expect(unreadPackets(channel) === 1, "_readableState.buffer");
  const inside = insideOf(connection);
  expect(typeof inside._chanMgr?.remove === "function", "_chanMgr.remove");
  expect(typeof inside._protocol.channelClose === "function", "_protocol.channelClose");
  connection.once("tcpip", (_, reject) => refuseOpening(connection, reject, "a reason"));
  const refused = new Promise<string>((done) =>
    client.forwardOut("", 0, "probe", 1, (error) => done(String(error?.message))),
  );
  expect((await refused).includes("a reason"), "_protocol.channelOpenFail");
  const rekeyed = new Promise<void>((done) => connection.rekey(() => done()));
  expect(isExchangingKeys(connection), "_kexinit during an exchange of keys");
  await rekeyed;
  const ended = new Promise((done) => given.once("close", done));
  clientChannel.close();
  given.resume();
  await ended;
  expect(isClosed(channel), "incoming.state of a channel that was closed");
}

/** Throws with the name of an internal that is not as expected. */
function expect(isSo: boolean, name: string): void {
  if (!isSo) throw new Error(`${name} is missing or has changed`);
}

/** Connections that a guest makes to its host: only its agent's counts, and the others are few, seldom and short. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DeadlineError } from "../../daemon/core/concurrency/published.ts";
import type { Log } from "../../daemon/core/log.ts";
import { ANOTHER_GUEST, CANNOT_RESTORE, GuestConnection } from "../../daemon/host/guest-link/connection.ts";
import { NOTHING_TO_ASK } from "../../daemon/host/guest-link/handshake.ts";
import { linkSocket, UNREAD } from "../../daemon/host/guest-link/link-socket.ts";
import { PRICE_PER_SECOND } from "../../daemon/host/guest-link/pace.ts";
import { quirksOf } from "../../shared/agent-protocol/device-quirks.ts";
import { encodeFrame, FrameType } from "../../shared/agent-protocol/frame.ts";
import { guestProof, hostProof } from "../../shared/agent-protocol/host-proof.ts";
import { Link } from "../../shared/agent-protocol/link.ts";
import {
  AGENT_PROOF_GENERATION,
  GENERATION,
  HOST_PORT,
  OLDEST_GENERATION,
  PROOF_GENERATION,
  RESERVED_PORTS,
  type Restored,
  type Welcome,
} from "../../shared/agent-protocol/messages.ts";
import { settled } from "./wire.ts";

const CID = 9100;
const NONCE = "the agent's own";
const SECRET = "5".repeat(64);
const CHALLENGE = "c".repeat(64);
const identity = { hostname: "h", machine_id: "0".repeat(32), env: { TOKEN: "of the sandbox" }, drive: null };

/** A socket between a host and a guest that the test plays; `from` is its source port as the host sees it. */
function dial(toGuest: (bytes: Uint8Array) => void = () => {}, from: number | null = null) {
  const socket = {
    reading: true,
    ended: false,
    write(bytes: Uint8Array) {
      toGuest(bytes.slice());
      return bytes.byteLength;
    },
    pause: () => {
      socket.reading = false;
    },
    resume: () => {
      socket.reading = true;
    },
    end: () => {
      socket.ended = true;
    },
  };
  const ports = { to: HOST_PORT, from };
  return { socket, ...linkSocket(socket as unknown as Parameters<typeof linkSocket>[0], ports, quirksOf(null)) };
}

interface Played {
  /** The nonce that it sends after the welcome. */
  nonce?: string;
  /** The nonce in its first message; agents sent it before PROOF_GENERATION. */
  toldNonce?: string;
  challenge?: string | undefined;
  /** Secrets that it proves, if it gives a challenge; none before AGENT_PROOF_GENERATION. */
  secrets?: string[];
  from?: number | null;
  /** The CID in its proofs. */
  cid?: number;
  restores?: true;
  /** Its previous nonce, as it reports it. */
  before?: string;
  generation?: number;
  /** When it reports that it is set up; immediately if absent. */
  readyAfter?: Promise<unknown>;
  /** Its request right after its ready. */
  asks?: { method: string };
  /** Its connection ends at the first request. */
  isLost?: true;
}

/** A guest that was set up before. */
const AGAIN: Played = { challenge: CHALLENGE };

/** Dials as an agent does, and answers as one. */
function dialAsAgent(connection: GuestConnection, played: Played = {}) {
  const { nonce = NONCE, toldNonce = "", challenge, generation = GENERATION, restores, before, asks, isLost } = played;
  const { secrets = [SECRET], from = null, cid = CID, readyAfter } = played;
  const proves = challenge !== undefined && generation >= AGENT_PROOF_GENERATION;
  const proofs = proves ? secrets.map((secret) => guestProof(secret, cid, HOST_PORT, challenge)) : undefined;
  const chunks: Uint8Array[] = [];
  const welcomes: Welcome[] = [];
  let link: Link | undefined;
  const host = dial((bytes) => link?.receive(bytes), from);
  connection.accept(host.link);
  link = new Link({
    side: "guest",
    transport: {
      write: (bytes) => {
        // Messages sent together arrive together.
        if (chunks.push(bytes.slice()) === 1) queueMicrotask(() => host.receive(Buffer.concat(chunks.splice(0))));
        return undefined;
      },
      close: () => {},
    },
    maxPeerStreams: 8,
    onOpen: (stream) => {
      if (isLost) host.end("the guest closed it");
      else stream.finish({ clock_ns: String(Date.now() * 1_000_000) });
    },
    onHandshake: (_type, body) => {
      welcomes.push(body as Welcome);
      const sayReady = () => link?.sendJson(FrameType.ready, 0, { ok: true, nonce, before, stages_ms: {} });
      if (readyAfter) void readyAfter.then(sayReady);
      else sayReady();
      if (asks) link?.open(asks).finished.catch(() => {});
    },
    onClosed: () => {},
  });
  link.sendJson(FrameType.hello, 0, {
    generation,
    version: "1",
    nonce: toldNonce,
    guest_cid: CID,
    set_up: challenge !== undefined,
    challenge,
    proofs,
    restores,
  });
  return { ...host, welcomes, guest: link };
}

/** `secret` is null with an agent that takes none. */
function connectionOf(
  nonce: string | null,
  secret: string | null = SECRET,
  restored: Restored | null = null,
  generation = secret === null ? OLDEST_GENERATION : GENERATION,
) {
  const warnings: Record<string, unknown>[] = [];
  const log = { warn: (message: string, fields = {}) => warnings.push({ message, ...fields }) } as unknown as Log;
  const connection = new GuestConnection(
    CID,
    identity,
    { generation, nonce, secret },
    log,
    NOTHING_TO_ASK,
    0,
    restored,
  );
  return { connection, warnings };
}

describe("a connection that is not the agent's", () => {
  test("is not reported if it ends before hello: on a slow host an agent abandons a dial, and retries", async () => {
    const { connection } = connectionOf(null);
    const { link } = dial();
    connection.accept(link);
    link.close("the guest closed it");
    await settled();
    expect(connection.state.value.failure).toBeNull();
    const agent = dialAsAgent(connection);
    expect(await connection.link(5_000)).toBe(agent.link);
  });

  test("does not affect the agent's link, whatever it sends", async () => {
    const { connection } = connectionOf(null);
    const agent = dialAsAgent(connection);
    const link = await connection.link(5_000);
    const others = [{}, { challenge: CHALLENGE, nonce: "guessed" }, { challenge: CHALLENGE, nonce: "" }];
    for (const played of others) {
      const other = dialAsAgent(connection, played);
      expect(await other.link.closed).toBe(ANOTHER_GUEST);
    }
    const garbage = dial();
    connection.accept(garbage.link);
    garbage.receive(encodeFrame(FrameType.ready, 0, new TextEncoder().encode("{}")));
    await vi.waitFor(() => expect(garbage.socket.ended).toBe(true));
    await settled();
    expect(await connection.link(5_000)).toBe(link);
    expect([link.isClosed, agent.socket.ended]).toEqual([false, false]);
    connection.close("over");
  });

  test("is limited to four with an agent without proof; the oldest is closed", async () => {
    const { connection } = connectionOf(NONCE, SECRET, null, PROOF_GENERATION);
    const silent = Array.from({ length: 6 }, () => dial());
    for (const { link } of silent) connection.accept(link);
    expect(silent.map(({ socket }) => socket.ended)).toEqual([true, true, false, false, false, false]);
    // An agent connects anyway, and no waiting caller was notified of the others.
    dialAsAgent(connection, { ...AGAIN, generation: PROOF_GENERATION });
    expect((await connection.link(5_000)).isClosed).toBe(false);
    connection.close("over");
    expect(silent.every(({ socket }) => socket.ended)).toBe(true);
  });

  test.each([
    [PROOF_GENERATION, 4],
    [GENERATION, 32],
  ])("is refused above a limit, without a warning for each (generation %i)", async (generation, most) => {
    const { connection, warnings } = connectionOf(NONCE, SECRET, null, generation);
    const many = Array.from({ length: 10_000 }, () => dial());
    for (const { link } of many) connection.accept(link);
    await settled();
    expect(many.filter(({ socket }) => !socket.ended).length).toBeLessThanOrEqual(most);
    expect(many.at(-1)?.socket.ended).toBe(true);
    expect(await many.at(-1)?.link.closed).toMatch(/too often/);
    expect(warnings).toHaveLength(1);
    connection.close("over");
  });
});

test("an agent that dials again replaces its previous link", async () => {
  const { connection } = connectionOf(null);
  const first = dialAsAgent(connection);
  await connection.link(5_000);
  const second = dialAsAgent(connection, AGAIN);
  await vi.waitFor(() => expect(first.socket.ended).toBe(true));
  expect(await connection.link(5_000)).toBe(second.link);
  connection.close("over");
});

test.each([null, NONCE])(
  "an agent that loses its connection after the setup dials again (known before: %s)",
  async (nonce) => {
    const { connection } = connectionOf(nonce);
    const lost = dialAsAgent(connection, { ...(nonce === null ? {} : AGAIN), isLost: true });
    const link = connection.link(5_000);
    await lost.link.closed;
    await settled();
    expect(connection.isBeingMet).toBe(false);
    const again = dialAsAgent(connection, { ...AGAIN, from: 512 });
    expect(connection.isBeingMet).toBe(true);
    expect(await link).toBe(again.link);
    connection.close("over");
  },
);

describe("the host", () => {
  test("sends its secret to a guest that has none, once, and then proves that it has it", async () => {
    const { connection } = connectionOf(null);
    const first = dialAsAgent(connection);
    await connection.link(5_000);
    expect(first.welcomes).toEqual([expect.objectContaining({ secret: SECRET, env: identity.env })]);
    expect(first.welcomes[0]).not.toHaveProperty("proof");
    const second = dialAsAgent(connection, AGAIN);
    await vi.waitFor(() => expect(first.socket.ended).toBe(true));
    expect(second.welcomes).toEqual([
      expect.objectContaining({ proof: hostProof(SECRET, HOST_PORT, CHALLENGE), env: {} }),
    ]);
    expect(second.welcomes[0]).not.toHaveProperty("secret");
    connection.close("over");
  });

  test("proves itself to a guest that has the secret, but was disconnected before its setup", async () => {
    const { connection } = connectionOf(null);
    const { welcomes } = dialAsAgent(connection, AGAIN);
    await connection.link(5_000);
    expect(welcomes).toEqual([expect.objectContaining({ proof: hostProof(SECRET, HOST_PORT, CHALLENGE) })]);
    expect(welcomes[0]).not.toHaveProperty("secret");
    connection.close("over");
  });

  test("sends neither secret nor environment to an unproven process, and ignores its requests", async () => {
    const requests: unknown[] = [];
    const log = { warn: () => {} } as unknown as Log;
    const known = { generation: GENERATION, nonce: NONCE, secret: SECRET };
    const connection = new GuestConnection(CID, identity, known, log, (_stream, request) => requests.push(request));
    expect(dialAsAgent(connection).welcomes).toEqual([]);
    const asks = { method: "a stranger's" };
    const stranger = dialAsAgent(connection, { challenge: CHALLENGE, nonce: "guessed", asks });
    await stranger.link.closed;
    expect(JSON.stringify(stranger.welcomes)).not.toMatch(new RegExp(`${SECRET}|TOKEN|${NONCE}`));
    dialAsAgent(connection, { ...AGAIN, asks: { method: "the agent's" } });
    await connection.link(5_000);
    expect(requests).toEqual([{ method: "the agent's" }]);
    connection.close("over");
  });

  test("serves an agent of an older template as before: it sends its nonce immediately, and has no secret", async () => {
    const old = { generation: OLDEST_GENERATION };
    const { connection } = connectionOf(null, null);
    const first = dialAsAgent(connection, old);
    await connection.link(5_000);
    expect(first.welcomes[0]).not.toHaveProperty("secret");
    expect(await dialAsAgent(connection, { ...old, toldNonce: "guessed" }).link.closed).toBe(ANOTHER_GUEST);
    const again = dialAsAgent(connection, { ...old, toldNonce: NONCE });
    await vi.waitFor(() => expect(first.socket.ended).toBe(true));
    expect(await connection.link(5_000)).toBe(again.link);
    connection.close("over");
  });

  test("rejects an older agent if the template has one that must prove itself", async () => {
    const { connection } = connectionOf(null);
    dialAsAgent(connection, { generation: OLDEST_GENERATION });
    await expect(connection.link(5_000)).rejects.toThrow(`generation ${OLDEST_GENERATION}`);
    connection.close("over");
  });
});

describe("waiting in vain for a guest that was set up before reports that it", () => {
  test.each<[string, Played, string]>([
    ["speaks a generation that is too old", { generation: 0 }, "generation 0"],
    ["speaks a generation that is newer", { generation: GENERATION + 1 }, `generation ${GENERATION + 1}`],
    ["is a different one", { nonce: "another's" }, ANOTHER_GUEST],
    ["was never set up", { challenge: undefined }, ANOTHER_GUEST],
  ])("%s", async (_why, played, reason) => {
    const { connection } = connectionOf(NONCE);
    const dialled = dialAsAgent(connection, { ...AGAIN, ...played });
    await dialled.link.closed;
    // It may have been any process of the guest.
    expect(connection.state.value.failure).toBeNull();
    const late = await connection.link(1).catch((error: unknown) => error);
    expect([late instanceof DeadlineError, (late as Error).message]).toEqual([true, expect.stringContaining(reason)]);
    dialAsAgent(connection, AGAIN);
    expect((await connection.link(5_000)).isClosed).toBe(false);
    connection.close("over");
  });

  test("has not dialled, without further details", async () => {
    const { connection } = connectionOf(NONCE);
    const late = connection.link(1);
    await expect(late).rejects.toThrow(DeadlineError);
    await expect(late).rejects.toThrow(/ 0\.001 s$/);
    connection.close("over");
  });
});

describe("a restored guest", () => {
  const forked: Restored = { how: "forked", secret: "7".repeat(64) };
  const rolledBack: Restored = { how: "rolled_back", secret: "8".repeat(64) };
  const RESTORED: Played = { ...AGAIN, restores: true };

  test.each([forked, rolledBack])(
    "as $how is informed with its environment, and has its new identity afterwards",
    async (how) => {
      const { connection } = connectionOf(NONCE, SECRET, how);
      const { welcomes } = dialAsAgent(connection, { ...RESTORED, nonce: "its new one", before: NONCE });
      await connection.link(5_000);
      const proof = hostProof(SECRET, HOST_PORT, CHALLENGE);
      expect(welcomes).toEqual([expect.objectContaining({ restored: how, proof, env: identity.env })]);
      expect(connection.acquaintance).toEqual({ secret: how.secret, nonce: "its new one" });
      expect(connection.state.value.restores).toBe(true);
      const again = dialAsAgent(connection, {
        ...RESTORED,
        ...{ nonce: "its new one", secrets: [how.secret ?? "", SECRET] },
      });
      await vi.waitFor(async () => expect(await connection.link(5_000)).toBe(again.link));
      expect(again.welcomes[0]).toMatchObject({ proof: hostProof(how.secret ?? "", HOST_PORT, CHALLENGE), env: {} });
      expect(again.welcomes[0]).not.toHaveProperty("restored");
      connection.close("over");
    },
  );

  test.each<[string, Played]>([
    ["does not send its former identity", {}],
    ["has another former identity", { before: "another's" }],
    ["sends its former identity as the current one", { nonce: NONCE }],
  ])("that %s is rejected, and the right one is accepted", async (_why, played) => {
    const { connection } = connectionOf(NONCE, SECRET, forked);
    const other = dialAsAgent(connection, { ...RESTORED, nonce: "its own", ...played });
    expect(await other.link.closed).toBe(ANOTHER_GUEST);
    expect(connection.acquaintance).toEqual({ secret: SECRET, nonce: NONCE });
    const agent = dialAsAgent(connection, { ...RESTORED, nonce: "its new one", before: NONCE });
    expect(await connection.link(5_000)).toBe(agent.link);
    expect(agent.welcomes[0]).toMatchObject({ restored: forked });
    connection.close("over");
  });

  test("requires an agent that can change its identity; an older one gets no data, and the wait fails with the reason", async () => {
    const { connection } = connectionOf(NONCE, SECRET, forked);
    const old = dialAsAgent(connection, AGAIN);
    expect(await old.link.closed).toBe(CANNOT_RESTORE);
    expect(old.welcomes).toEqual([]);
    await expect(connection.link(1)).rejects.toThrow(CANNOT_RESTORE);
    connection.close("over");
  });

  test("as resumed has its former identity; an older agent continues without being informed", async () => {
    for (const played of [RESTORED, AGAIN]) {
      const { connection } = connectionOf(NONCE, SECRET, { how: "resumed" });
      const { welcomes } = dialAsAgent(connection, played);
      await connection.link(5_000);
      const restored = played.restores && { how: "resumed" };
      expect([welcomes.length, welcomes[0]?.restored, welcomes[0]?.env]).toEqual([1, restored, {}]);
      expect(connection.acquaintance).toEqual({ secret: SECRET, nonce: NONCE });
      expect(connection.state.value.restores).toBe(played.restores === true);
      const again = dialAsAgent(connection, played);
      await vi.waitFor(async () => expect(await connection.link(5_000)).toBe(again.link));
      expect(again.welcomes[0]).not.toHaveProperty("restored");
      connection.close("over");
    }
  });
});

describe("an agent with proof", () => {
  const FORKED: Restored = { how: "forked", secret: "7".repeat(64) };
  /** Messages that a process of the guest other than the agent can send. */
  const IMPOSTORS: [string, Played][] = [
    ["proves nothing", { secrets: [] }],
    ["proves another secret", { secrets: ["6".repeat(64)] }],
    ["proves the secret as a clone of another CID", { cid: CID + 1 }],
    ["claims to be an older agent", { generation: PROOF_GENERATION }],
    [
      "claims to be an agent of the first generation, with a nonce",
      { generation: OLDEST_GENERATION, toldNonce: "guessed" },
    ],
    ["claims that it was never set up", { challenge: undefined }],
  ];
  let now = 0;
  beforeEach(() => {
    now = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => now);
  });
  afterEach(() => vi.restoreAllMocks());

  test.each(IMPOSTORS)("alone gets a fork's secret and environment, not a process that %s", async (_what, claims) => {
    const { connection } = connectionOf(NONCE, SECRET, FORKED);
    const other = dialAsAgent(connection, { ...AGAIN, restores: true, nonce: "its own", before: "guessed", ...claims });
    await other.link.closed;
    expect(other.welcomes).toEqual([]);
    expect(connection.acquaintance).toEqual({ secret: SECRET, nonce: NONCE });
    const agent = dialAsAgent(connection, { ...AGAIN, restores: true, nonce: "new", before: NONCE });
    expect(await connection.link(5_000)).toBe(agent.link);
    expect(agent.welcomes).toEqual([expect.objectContaining({ restored: FORKED, env: identity.env })]);
    connection.close("over");
  });

  test("of a fork whose ready was lost is accepted with either secret", async () => {
    for (const secrets of [[FORKED.secret ?? ""], [FORKED.secret ?? "", SECRET], [SECRET]]) {
      const { connection } = connectionOf(NONCE, SECRET, FORKED);
      const agent = dialAsAgent(connection, { ...AGAIN, restores: true, nonce: "new", before: NONCE, secrets });
      expect(await connection.link(5_000)).toBe(agent.link);
      connection.close("over");
    }
  });

  test("is not required by a record with an older generation, and is served as before", async () => {
    const { connection } = connectionOf(NONCE, SECRET, null, PROOF_GENERATION);
    const agent = dialAsAgent(connection, { ...AGAIN, secrets: [], from: 70_000 });
    expect(await connection.link(5_000)).toBe(agent.link);
    connection.close("over");
  });

  test("is not blocked by processes without a reserved port, which do not count", async () => {
    const { connection, warnings } = connectionOf(NONCE);
    const silent = dialAsAgent(connection, { ...AGAIN, from: 512, readyAfter: new Promise(() => {}) });
    await vi.waitFor(() => expect(silent.welcomes).toHaveLength(1));
    for (let count = 0; count < 10_000; count++) {
      const other = dial(() => {}, RESERVED_PORTS + count);
      connection.accept(other.link);
      expect([other.socket.ended, other.link.isClosed]).toEqual([true, true]);
    }
    expect(silent.link.isClosed).toBe(false);
    expect(warnings).toEqual([expect.objectContaining({ error: expect.stringContaining(`port ${RESERVED_PORTS}`) })]);
    const agent = dialAsAgent(connection, { ...AGAIN, from: RESERVED_PORTS - 1 });
    expect(await connection.link(5_000)).toBe(agent.link);
    connection.close("over");
  });

  test("is accepted once per hundredth of a second, and never displaced, if the device reports no source port", async () => {
    const { connection } = connectionOf(NONCE, SECRET, FORKED);
    const ready = Promise.withResolvers<void>();
    const played: Played = { ...AGAIN, restores: true, nonce: "new", before: NONCE, readyAfter: ready.promise };
    for (let count = 0; count < 1_000; count++) connection.accept(dial().link);
    now += 10;
    const agent = dialAsAgent(connection, played);
    await vi.waitFor(() => expect(agent.welcomes).toHaveLength(1));
    for (let count = 0; count < 1_000; count++) {
      now += 10;
      connection.accept(dial().link);
    }
    expect(agent.link.isClosed).toBe(false);
    ready.resolve();
    expect(await connection.link(5_000)).toBe(agent.link);
    connection.close("over");
  });

  test.each([PROOF_GENERATION, GENERATION])(
    "is set up the first time over one connection: others get no secret in the meantime (generation %i)",
    async (generation) => {
      const { connection } = connectionOf(null, SECRET, null, generation);
      const ready = Promise.withResolvers<void>();
      const agent = dialAsAgent(connection, { generation, readyAfter: ready.promise });
      await vi.waitFor(() => expect(agent.welcomes).toHaveLength(1));
      for (const challenge of [undefined, CHALLENGE]) {
        const other = dialAsAgent(connection, { generation, challenge, secrets: [], nonce: "guessed" });
        await other.link.closed;
        expect(other.welcomes).toEqual([]);
      }
      expect(connection.state.value.failure).toBeNull();
      ready.resolve();
      expect(await connection.link(5_000)).toBe(agent.link);
      connection.close("over");
    },
  );

  test("whose first connection was lost is set up over the next", async () => {
    const { connection } = connectionOf(null);
    const lost = dialAsAgent(connection, { readyAfter: new Promise(() => {}) });
    await vi.waitFor(() => expect(lost.welcomes).toHaveLength(1));
    lost.end("the guest closed it");
    const agent = dialAsAgent(connection);
    expect(await connection.link(5_000)).toBe(agent.link);
    connection.close("over");
  });
});

test("a flooding guest is not read before its next turn", async () => {
  const { socket, link, receive } = dial();
  link.believe();
  const pings = Buffer.concat(Array.from({ length: 1024 }, () => encodeFrame(FrameType.pong, 0, new Uint8Array(0))));
  let chunks = 0;
  // Each in a separate turn: work that exceeds a turn's time waits for the next.
  const flood = async (guest: Pick<ReturnType<typeof dial>, "socket" | "receive">) => {
    for (; guest.socket.reading; chunks++) {
      guest.receive(pings);
      await new Promise((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));
    }
  };
  await flood({ socket, receive });
  expect(chunks).toBeGreaterThanOrEqual(PRICE_PER_SECOND / 1024);
  expect(chunks).toBeLessThan((2 * PRICE_PER_SECOND) / 1024);
  // A frozen link is read from when it is released, not when its time has come.
  const still = dial();
  still.link.believe();
  await flood(still);
  still.link.freeze();
  const last = dial();
  last.link.believe();
  await flood(last);
  await vi.waitFor(() => expect([socket.reading, last.socket.reading]).toEqual([true, true]), { timeout: 5_000 });
  expect(still.socket.reading).toBe(false);
  still.link.release();
  expect(still.socket.reading).toBe(true);
  link.close("over");
});

test("a connection that sends too much before its identification is closed, unread", async () => {
  const { socket, link, receive } = dial();
  const pongs = Buffer.concat(Array.from({ length: 500 }, () => encodeFrame(FrameType.pong, 0, new Uint8Array(0))));
  for (let sentBytes = 0; sentBytes <= 16 * 1024; sentBytes += pongs.byteLength) receive(pongs);
  expect(await link.closed).toMatch(/too much/);
  expect(socket.ended).toBe(true);
});

test("a guest that reads nothing is disconnected before much accumulates", async () => {
  const { socket, link } = dial();
  socket.write = () => 0;
  const request = { method: "x", text: "x".repeat(1024 * 1024) };
  let requestCount = 0;
  for (; !link.isClosed && requestCount < 1000; requestCount++) link.open(request).finished.catch(() => {});
  expect(requestCount).toBeLessThan(100);
  expect(await link.closed).toBe(UNREAD);
  expect(socket.ended).toBe(true);
});

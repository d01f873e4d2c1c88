/**
 * The agent's authentication of its host, over real sockets: a peer that does not prove to be the host that set the guest up gets nothing.
 */
import { constants } from "node:os";
import { describe, expect, test, vi } from "vitest";
import type { Log } from "../../daemon/core/log.ts";
import { GuestConnection, strangers } from "../../daemon/host/guest-link/connection.ts";
import { HostAuth, NO_SECRET, UNPROVEN_HOST } from "../../guest-agent/host-auth.ts";
import { SystemError, socketPair } from "../../guest-agent/libc.ts";
import { keepLinked, NO_WELCOME, type Served, serve } from "../../guest-agent/link.ts";
import { adopt, linkOver } from "../../guest-agent/socket-link.ts";
import { FrameType } from "../../shared/agent-protocol/frame.ts";
import { guestProof, hostProof, sameText } from "../../shared/agent-protocol/host-proof.ts";
import type { Link } from "../../shared/agent-protocol/link.ts";
import {
  GENERATION,
  type Hello,
  HOST_PORT,
  PROOF_GENERATION,
  type Ready,
} from "../../shared/agent-protocol/messages.ts";
import { dialDaemon } from "./dial-daemon.ts";

const CID = 9100;
const SECRET = "5".repeat(64);
const OTHER = "6".repeat(64);
const NONCE = "by which the host knows the guest";

/** A guest with an agent that is real from the connection to the request; the requested actions are only recorded. */
function guest() {
  const carriedOut: unknown[] = [];
  const asked: unknown[] = [];
  const setup = {
    done: false,
    carryOut: async (welcome: unknown): Promise<Ready> => {
      carriedOut.push(welcome);
      setup.done = true;
      return { ok: true, nonce: NONCE, stages_ms: {} };
    },
  };
  const served: Served = {
    trust: new HostAuth(),
    setup,
    router: (stream, request) => {
      asked.push(request);
      stream.finish({ clock_ns: String(Date.now() * 1_000_000) });
    },
    line: { attach: () => {}, detach: () => {} } as unknown as Served["line"],
  };
  return {
    carriedOut,
    asked,
    served,
    serve: (fd: number, port = HOST_PORT) => serve(fd, port, served, () => CID),
    keepLinked: (connect: (port: number) => Promise<number>) =>
      keepLinked(served, { over: Promise.resolve(), end: () => {} }, connect, () => CID),
  };
}

/** The listener at the port that the guest dials. */
async function listener() {
  const [own, guests] = socketPair();
  const received: { hello?: Hello; ready?: Ready } = {};
  const ended = Promise.withResolvers<string>();
  const link: Link = await linkOver(own, {
    side: "host",
    maxPeerStreams: 4,
    onOpen: () => {},
    onHandshake: (type, body) => Object.assign(received, type === FrameType.hello ? { hello: body } : { ready: body }),
    onClosed: ended.resolve,
  });
  const hello = () => vi.waitFor(() => received.hello ?? expect.fail("no hello"));
  const ready = () => vi.waitFor(() => received.ready ?? expect.fail("no ready"));
  const welcome = (fields: object) => link.sendJson(FrameType.welcome, 0, { generation: GENERATION, ...fields });
  return { guests, heard: received, hello, ready, welcome, link, ended: ended.promise };
}

/** A guest that its host has set up, and left. */
async function setUp() {
  const one = guest();
  const host = await listener();
  const served = one.serve(host.guests);
  const hello = await host.hello();
  expect(hello).not.toHaveProperty("challenge");
  host.welcome({ secret: SECRET });
  await host.ready();
  host.link.close("away");
  expect((await served).welcomed).toBe(true);
  return { ...one, firstHello: hello };
}

describe("a process that answers a guest that was set up, and", () => {
  test("sends nothing: gets no secret, and cannot use the guest", async () => {
    const { serve, asked, carriedOut } = await setUp();
    const squatter = await listener();
    void serve(squatter.guests);
    const hello = await squatter.hello();
    expect(JSON.stringify(hello)).not.toContain(NONCE);
    expect(hello).toEqual({
      ...{ generation: GENERATION, nonce: "", guest_cid: CID, set_up: true, restores: true },
      version: expect.any(String),
      challenge: expect.stringMatching(/^[0-9a-f]{64}$/),
      proofs: [guestProof(SECRET, CID, HOST_PORT, hello.challenge ?? "")],
    });
    const stream = squatter.link.open({ method: "exec_start" });
    await expect(stream.finished).rejects.toMatchObject({ code: "invalid_request" });
    expect([asked, carriedOut.length, squatter.heard.ready]).toEqual([[], 1, undefined]);
    squatter.link.close("over");
  });

  type Answer = (hello: Hello, before: Hello) => object;
  test.each<[string, Answer]>([
    ["gives no proof", () => ({})],
    ["sends a secret of its own", () => ({ secret: OTHER })],
    ["proves another secret", ({ challenge = "" }) => ({ proof: hostProof(OTHER, HOST_PORT, challenge) })],
    [
      "proves another secret, which it sends",
      ({ challenge = "" }) => ({ secret: OTHER, proof: hostProof(OTHER, HOST_PORT, challenge) }),
    ],
    [
      "relays the host's answer from another port",
      ({ challenge = "" }) => ({ proof: hostProof(SECRET, HOST_PORT + 1, challenge) }),
    ],
    ["relays the host's answer to another challenge", () => ({ proof: hostProof(SECRET, HOST_PORT, "c".repeat(64)) })],
    [
      "sends a nearly correct proof",
      ({ challenge = "" }) => ({ proof: hostProof(SECRET, HOST_PORT, challenge).slice(0, -1) }),
    ],
    ["sends a proof that is not a string", () => ({ proof: { length: 64 } })],
  ])("%s: is disconnected, without any effect", async (_, answer) => {
    const { serve, asked, carriedOut, firstHello } = await setUp();
    const squatter = await listener();
    const served = serve(squatter.guests);
    const hello = await squatter.hello();
    const stream = squatter.link.open({ method: "exec_start" });
    squatter.welcome(answer(hello, firstHello));
    squatter.link.open({ method: "exec_start" }).finished.catch(() => {});
    expect(await served).toEqual({ welcomed: false, reason: UNPROVEN_HOST });
    await expect(stream.finished).rejects.toThrow();
    expect([asked, carriedOut.length, squatter.heard.ready]).toEqual([[], 1, undefined]);
  });

  test("has the secret: is served, and receives the guest's identity", async () => {
    const { serve, asked } = await setUp();
    const host = await listener();
    void serve(host.guests);
    const { challenge = "" } = await host.hello();
    host.welcome({ proof: hostProof(SECRET, HOST_PORT, challenge) });
    expect(await host.ready()).toMatchObject({ ok: true, nonce: NONCE });
    await host.link.open({ method: "exec_start" }).finished;
    expect(asked).toEqual([{ method: "exec_start" }]);
    // Once: a second welcome over the same connection proves nothing new.
    host.link.close("over");
  });

  test("challenges are unique", async () => {
    const { serve } = await setUp();
    const challenges: unknown[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const host = await listener();
      const served = serve(host.guests);
      challenges.push((await host.hello()).challenge);
      host.link.close("over");
      await served;
    }
    expect(new Set(challenges).size).toBe(3);
  });
});

test.each([
  ["none", {}],
  ["a secret that is too short", { secret: SECRET.slice(1) }],
  ["a secret that is not a string", { secret: 5 }],
])("a first welcome with %s is rejected", async (_, fields) => {
  const one = guest();
  const host = await listener();
  const served = one.serve(host.guests);
  await host.hello();
  host.welcome(fields);
  expect(await served).toEqual({ welcomed: false, reason: NO_SECRET });
  expect(one.carriedOut).toEqual([]);
});

test("a second welcome over one connection is rejected", async () => {
  const one = guest();
  const host = await listener();
  const served = one.serve(host.guests);
  await host.hello();
  host.welcome({ secret: SECRET });
  await host.ready();
  host.welcome({ secret: OTHER });
  expect((await served).reason).toBe(UNPROVEN_HOST);
  expect(one.carriedOut).toHaveLength(1);
});

test("a silent listener delays the guest for ten seconds", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const one = guest();
    const [own, guests] = socketPair();
    await adopt(own, { data: () => {} });
    const served = one.serve(guests);
    await vi.advanceTimersByTimeAsync(9_900);
    let over = false;
    void served.then(() => {
      over = true;
    });
    await new Promise(setImmediate);
    expect(over).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(await served).toEqual({ welcomed: false, reason: NO_WELCOME });
  } finally {
    vi.useRealTimers();
  }
});

test("an agent that meets impostors tries all ports until it finds its host again", async () => {
  const one = guest();
  const dialled: number[] = [];
  const welcomeAs = async (host: Awaited<ReturnType<typeof listener>>, port: number) => {
    const { challenge } = await host.hello();
    host.welcome(challenge === undefined ? { secret: SECRET } : { proof: hostProof(SECRET, port, challenge) });
    await host.ready();
    host.link.close("the daemon ends");
  };
  /** The host at its port for the first time, then another process at that port, and the host at another port. */
  const answers: ((port: number) => Promise<number>)[] = [
    async (port) => {
      const host = await listener();
      void welcomeAs(host, port);
      return host.guests;
    },
    async () => {
      const squatter = await listener();
      void squatter.hello().then(() => squatter.welcome({ secret: OTHER }));
      return squatter.guests;
    },
    ...[1, 2].map(() => async () => {
      throw new SystemError("connect", constants.errno.ECONNREFUSED);
    }),
    async (port) => {
      const host = await listener();
      void welcomeAs(host, port);
      return host.guests;
    },
  ];
  void one.keepLinked(async (port) => {
    dialled.push(port);
    const answer = answers.shift();
    return answer ? await answer(port) : await new Promise<never>(() => {});
  });
  await vi.waitFor(() => expect(dialled).toHaveLength(6), { timeout: 5_000 });
  expect(dialled.map((port) => port - HOST_PORT)).toEqual([0, 0, 1, 2, 3, 3]);
  expect(one.carriedOut).toHaveLength(2);
});

describe("real host and guest", () => {
  const log = { warn: () => {} } as unknown as Log;
  const identity = { hostname: "h", machine_id: "0".repeat(32), env: {}, drive: null };

  /** Connects the guest to a daemon that listens on `port`. */
  const connect = (connection: GuestConnection, { served }: ReturnType<typeof guest>, port = HOST_PORT) =>
    dialDaemon(connection, served, CID, { port });

  test("recognize each other over any number of connections, and after the daemon's restart", async () => {
    const one = guest();
    const connection = new GuestConnection(CID, identity, strangers(GENERATION), log);
    void connect(connection, one);
    await connection.link(5_000);
    void connect(connection, one);
    await vi.waitFor(() => expect(one.carriedOut).toHaveLength(2));
    await connection.link(5_000);
    const kept = { generation: GENERATION, ...JSON.parse(JSON.stringify(connection.acquaintance)) };
    connection.close("the daemon ends");
    const later = new GuestConnection(CID, identity, kept, log);
    void connect(later, one);
    expect((await later.link(5_000)).isClosed).toBe(false);
    expect(one.carriedOut).toHaveLength(3);
    later.close("over");
  });

  test("do not connect if the daemon has another guest's secret, or answers on another port", async () => {
    const one = guest();
    const connection = new GuestConnection(CID, identity, strangers(GENERATION), log);
    void connect(connection, one);
    await connection.link(5_000);
    const { nonce } = connection.acquaintance;
    const foreign = new GuestConnection(CID, identity, { ...strangers(PROOF_GENERATION), nonce }, log);
    expect(await connect(foreign, one)).toEqual({ welcomed: false, reason: UNPROVEN_HOST });
    const known = { generation: PROOF_GENERATION, ...connection.acquaintance };
    const elsewhere = new GuestConnection(CID, identity, known, log);
    expect(await connect(elsewhere, one, HOST_PORT + 1)).toEqual({ welcomed: false, reason: UNPROVEN_HOST });
    expect(one.carriedOut).toHaveLength(1);
    for (const each of [connection, foreign, elsewhere]) each.close("over");
  });

  test("have a secret that is unique to the guest", () => {
    const secrets = [1, 2, 3].map(() => strangers(GENERATION).secret);
    expect(new Set(secrets).size).toBe(3);
    const generation = PROOF_GENERATION - 1;
    expect(strangers(generation)).toEqual({ generation, secret: null, nonce: null });
  });
});

test("strings are compared correctly, whatever their content", () => {
  expect([sameText("a", "a"), sameText("", ""), sameText("a", "b"), sameText("a", "aa"), sameText("ä", "a")]).toEqual([
    ...[true, true],
    ...[false, false, false],
  ]);
});

/** A guest that breaks the protocol: it loses the connection, with the reason, and the host nothing else. */
import { heapStats } from "bun:jsc";
import { describe, expect, test } from "vitest";
import { DeadlineError } from "../../daemon/core/concurrency/published.ts";
import { GuestLink } from "../../daemon/host/guest-link/handshake.ts";
import { encodeFrame, FrameDecoder, FrameType, MAX_PAYLOAD_FROM_HOST } from "../../shared/agent-protocol/frame.ts";
import { WINDOW_BYTES } from "../../shared/agent-protocol/link.ts";
import { GENERATION, type Hello, HOST_PORT, type Welcome } from "../../shared/agent-protocol/messages.ts";
import { alone, credit, data, settled } from "./wire.ts";

const REQUEST = { method: "test" };

describe("a breach closes the link, once, with its reason:", () => {
  type Breach = (guest: ReturnType<typeof alone>, stream: number) => void;
  const breaches: [string, RegExp, Breach][] = [
    [
      "data beyond the window",
      /beyond the window/,
      ({ send }, id) => {
        for (let sent = 0; sent <= WINDOW_BYTES; sent += 0x10000) send(FrameType.data, id, data(1, 0x10000));
      },
    ],
    [
      "one byte beyond the window",
      /beyond the window/,
      ({ send }, id) => {
        for (let sent = 0; sent < WINDOW_BYTES; sent += 0x8000) send(FrameType.data, id, data(1, 0x8000));
        send(FrameType.data, id, data(1, 1));
      },
    ],
    ["credit that was never used", /credit beyond/, ({ send }, id) => send(FrameType.credit, id, credit(0, 1))],
    ["credit above the maximum", /credit beyond/, ({ send }, id) => send(FrameType.credit, id, credit(0, 0xffffffff))],
    ["credit of the wrong length", /credit frame/, ({ send }, id) => send(FrameType.credit, id, new Uint8Array(4))],
    [
      "data after the end of its channel",
      /after the end/,
      ({ send }, id) => {
        send(FrameType.eof, id, data(1, 0));
        send(FrameType.data, id, data(1, 1));
      },
    ],
    ["a channel that does not exist", /channel 4/, ({ send }, id) => send(FrameType.data, id, data(4, 1))],
    [
      "credit for a channel that does not exist",
      /channel 255/,
      ({ send }, id) => send(FrameType.credit, id, credit(255, 0)),
    ],
    ["the end of a channel that does not exist", /channel 9/, ({ send }, id) => send(FrameType.eof, id, data(9, 0))],
    ["data without a channel", /without its channel/, ({ send }, id) => send(FrameType.data, id)],
    ["an end without a channel", /without its channel/, ({ send }, id) => send(FrameType.eof, id)],
    [
      "events without a request",
      /unread events/,
      ({ send }, id) => {
        for (let n = 0; n < 1000; n++) send(FrameType.event, id, { n });
      },
    ],
    [
      "events without a request, few and large",
      /unread events/,
      ({ send }, id) => {
        for (let n = 0; n < 3; n++) send(FrameType.event, id, `[${"0,".repeat(15_000)}0]`);
      },
    ],
    ["an event that is not JSON", /JSON/, ({ send }, id) => send(FrameType.event, id, "{")],
    ["an event that is not UTF-8", /./, ({ send }, id) => send(FrameType.event, id, Uint8Array.of(0x22, 0xff, 0x22))],
    ["a result that is not JSON", /JSON/, ({ send }, id) => send(FrameType.close, id, "nonsense")],
    ["an end without result or error", /without result or error/, ({ send }, id) => send(FrameType.close, id, {})],
    ["an end that is a number", /without result or error/, ({ send }, id) => send(FrameType.close, id, "7")],
    ["data on an unknown stream", /never open/, ({ send }) => send(FrameType.data, 999, data(1, 1))],
    ["the end of an unknown stream", /never open/, ({ send }) => send(FrameType.close, 998, { result: 1 })],
    ["data on stream 0", /never open/, ({ send }) => send(FrameType.data, 0, data(1, 1))],
    ["a frame type on an unknown stream", /type 77 for stream 12/, ({ send }) => send(77, 12)],
    ["a stream with a number of the host", /may not be opened/, ({ send }) => send(FrameType.open, 3, REQUEST)],
    ["stream 0", /may not be opened/, ({ send }) => send(FrameType.open, 0, REQUEST)],
    [
      "a stream that was open before",
      /may not be opened/,
      ({ send }) => {
        send(FrameType.open, 4, REQUEST);
        send(FrameType.open, 4, REQUEST);
      },
    ],
    [
      "a stream with a lower number than the last",
      /may not be opened/,
      ({ send }) => {
        send(FrameType.open, 8, REQUEST);
        send(FrameType.open, 6, REQUEST);
      },
    ],
    ["a request that is not JSON", /JSON/, ({ send }) => send(FrameType.open, 2, "{")],
    ["an invalid length", /over the limit/, ({ link }) => link.receive(Buffer.alloc(9, 0xff))],
  ];

  test.each(breaches)("%s", async (_, reason, commit) => {
    const guest = alone();
    const stream = guest.link.open(REQUEST);
    const other = guest.link.open(REQUEST);
    commit(guest, stream.id);
    expect(guest.closed).toEqual([expect.stringMatching(reason)]);
    expect(guest.transportClosed).toBe(1);
    for (const each of [stream, other]) await expect(each.finished).rejects.toMatchObject({ code: "link_closed" });
    // Anything after it is ignored.
    guest.send(FrameType.close, stream.id, { result: "too late" });
    guest.link.receive(Buffer.alloc(100, 0xff));
    expect(guest.closed).toHaveLength(1);
  });
});

describe("no breach", () => {
  test("is an unknown frame type on an open stream, or a late frame for an ended one", () => {
    const guest = alone();
    const stream = guest.link.open(REQUEST);
    guest.send(77, stream.id, "whatever");
    guest.send(FrameType.close, stream.id, { result: 1, more: "fields" });
    for (const type of [FrameType.data, FrameType.eof, FrameType.event, FrameType.credit, FrameType.close]) {
      guest.send(type, stream.id, "anything at all");
    }
    guest.send(FrameType.pong, 0);
    guest.send(FrameType.data, stream.id);
    expect(guest.closed).toEqual([]);
  });

  test("is an empty frame, which uses nothing of the window", () => {
    const guest = alone();
    const { id } = guest.link.open(REQUEST);
    for (let n = 0; n < 100_000; n++) guest.send(FrameType.data, id, data(1, 0));
    for (let sent = 0; sent < WINDOW_BYTES; sent += 0x10000) guest.send(FrameType.data, id, data(1, 0x10000));
    expect(guest.closed).toEqual([]);
  });
});

test("a guest cannot open more streams than allowed, and gets an error", () => {
  const guest = alone({ maxPeerStreams: 3 });
  for (let id = 2; id <= 2000; id += 2) guest.send(FrameType.open, id, REQUEST);
  expect(guest.opened).toHaveLength(3);
  expect(guest.closed).toEqual([]);
  const refused = guest.sent.filter(({ type }) => type === FrameType.close);
  expect(refused).toHaveLength(997);
  expect(JSON.parse(Buffer.from(refused[0]?.payload ?? []).toString())).toMatchObject({
    error: { code: "too_many_streams" },
  });
});

test.each<[string, (n: number) => [type: FrameType, stream: number, payload?: object]]>([
  ["pings", () => [FrameType.ping, 0]],
  ["streams", (n) => [FrameType.open, 2 * n, REQUEST]],
])("a guest that requests %s without reading the answers is disconnected before they accumulate", (_, ask) => {
  const deaf = alone({ deaf: true, maxPeerStreams: 1 });
  for (let n = 1; n <= 100_000; n++) deaf.send(...ask(n));
  expect(deaf.closed).toEqual([expect.stringMatching(/without reading/)]);
  expect(deaf.sent.length).toBeLessThan(2000);

  const reading = alone({ maxPeerStreams: 1 });
  for (let n = 1; n <= 100_000; n++) reading.send(...ask(n));
  expect(reading.closed).toEqual([]);
});

test("received data are copied: unaffected by changes of the input buffer, and not keeping it alive", async () => {
  const guest = alone();
  const stream = guest.link.open(REQUEST);
  // Sockets deliver Buffers, and Buffer's slice() is no copy.
  const chunk = Buffer.from(encodeFrame(FrameType.data, stream.id, Buffer.from("\u0001hello")));
  guest.link.receive(chunk);
  chunk.fill(0);
  const { value } = await stream.read(1).next();
  expect(Buffer.from(value ?? []).toString()).toBe("hello");
  expect(value?.buffer.byteLength).toBe(5);
});

test("the host buffers at most a guest's windows", async () => {
  const guest = alone();
  const streams = Array.from({ length: 8 }, () => guest.link.open(REQUEST));
  Bun.gc(true);
  const before = heapStats().extraMemorySize;
  for (const { id } of streams) {
    for (const channel of [0, 1, 2, 3]) {
      for (let sent = 0; sent < WINDOW_BYTES; sent += 0x4000) guest.send(FrameType.data, id, data(channel, 0x4000));
    }
  }
  await settled();
  Bun.gc(true);
  const held = heapStats().extraMemorySize - before;
  expect(guest.closed).toEqual([]);
  expect(held).toBeGreaterThan(8 * 4 * WINDOW_BYTES * 0.9);
  expect(held).toBeLessThan(8 * 4 * WINDOW_BYTES * 1.5);
});

test("300 000 random frames close a link or not, and have no other effect", () => {
  let state = 7;
  const next = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  // Mostly valid frames, so that a link lives long enough to reach every state.
  const frames: (() => [type: number, stream: number, payload?: Uint8Array | string])[] = [
    () => [FrameType.data, 1 + 2 * next(4), data(next(4), next(200))],
    () => [FrameType.data, 1 + 2 * next(4), data(next(4), 0)],
    () => [FrameType.credit, 1 + 2 * next(4), credit(next(4), 0)],
    () => [FrameType.event, 1 + 2 * next(4), "{}"],
    () => [FrameType.ping, 0],
    () => [FrameType.pong, next(3)],
    () => [FrameType.open, 2 * (1 + next(500)), '{"method":"exec"}'],
    () => [FrameType.close, 1 + 2 * next(50), '{"result":1}'],
    () => [11 + next(200), 1 + 2 * next(4), new Uint8Array(next(30))],
    () => [next(13), next(60), new Uint8Array(next(30))],
  ];
  let links = 0;
  let wrong = 0;
  let guest = alone({ maxPeerStreams: 4 });
  for (let sent = 0; sent < 300_000; sent++) {
    if (sent === 0 || guest.link.closedReason !== null) {
      guest = alone({ maxPeerStreams: 4 });
      links++;
      for (let n = 0; n < 4; n++) guest.link.open(REQUEST);
    }
    const [type, stream, payload] = frames[next(frames.length)]?.() ?? [0, 0];
    guest.send(type, stream, payload);
    if (guest.closed.length !== (guest.link.closedReason === null ? 0 : 1) || guest.opened.length > 1000) wrong++;
  }
  console.log(`300 000 frames of every kind closed ${links - 1} links`);
  expect(wrong).toBe(0);
  expect(links).toBeGreaterThan(1000);
}, 60_000);

describe("the handshake", () => {
  const HELLO: Hello = { generation: GENERATION, version: "0.1.0", nonce: "", guest_cid: 9100, set_up: false };
  const WELCOME: Welcome = {
    generation: GENERATION,
    entropy_b64: Buffer.alloc(64).toString("base64"),
    clock_ns: "1",
    hostname: "worker-1",
    machine_id: "0".repeat(32),
    env: {},
    drive: null,
  };

  function guest() {
    const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_HOST);
    const told: number[] = [];
    const link = new GuestLink(
      {
        write: (bytes) => {
          for (const { type } of decoder.push(bytes)) told.push(type);
          return undefined;
        },
        close: () => {},
      },
      { widen: () => {}, shut: () => {}, charge: () => {}, stopReading: () => {}, open: () => {} },
      { to: HOST_PORT, from: null },
    );
    const send = (type: FrameType, body: object) =>
      link.receive(encodeFrame(type, 0, Buffer.from(JSON.stringify(body))));
    return { link, told, send };
  }

  test("is hello, welcome, ready", async () => {
    const { link, told, send } = guest();
    send(FrameType.hello, HELLO);
    expect(await link.hello(1000)).toEqual(HELLO);
    const welcomed = link.welcome(WELCOME, 1000, () => {});
    expect(told).toEqual([FrameType.welcome]);
    send(FrameType.ready, { ok: true, nonce: "n", stages_ms: { mount_ms: 1, "Bad Name": 2, text: "3" } });
    expect(await welcomed).toEqual({ ok: true, nonce: "n", stages_ms: { mount_ms: 1 } });
    expect(link.isClosed).toBe(false);
  });

  test("ends with the guest's error if it could not be set up", async () => {
    const { link, send } = guest();
    send(FrameType.hello, HELLO);
    const welcomed = link.welcome(WELCOME, 1000, () => {});
    send(FrameType.ready, { ok: false, error: "mount: no such device" });
    await expect(welcomed).rejects.toThrow("mount: no such device");
  });

  test.each<[string, (send: ReturnType<typeof guest>["send"]) => void]>([
    [
      "a ready before the welcome",
      (send) => {
        send(FrameType.hello, HELLO);
        send(FrameType.ready, { ok: true, nonce: "n", stages_ms: {} });
      },
    ],
    ["a ready before the hello", (send) => send(FrameType.ready, { ok: true, nonce: "", stages_ms: {} })],
    ["a welcome from a guest", (send) => send(FrameType.welcome, WELCOME)],
    [
      "a second hello",
      (send) => {
        for (let n = 0; n < 2; n++) send(FrameType.hello, HELLO);
      },
    ],
    [
      "a hello after the ready",
      (send) => {
        send(FrameType.hello, HELLO);
        send(FrameType.ready, { ok: true, nonce: "", stages_ms: {} });
        send(FrameType.hello, HELLO);
      },
    ],
    [
      "a second ready",
      (send) => {
        send(FrameType.hello, HELLO);
        for (let n = 0; n < 2; n++) send(FrameType.ready, { ok: true, nonce: "", stages_ms: {} });
      },
    ],
    ["a hello of a generation too old", (send) => send(FrameType.hello, { ...HELLO, generation: 0 })],
    ["a hello of a newer generation", (send) => send(FrameType.hello, { ...HELLO, generation: GENERATION + 1 })],
    ["a hello without its CID", (send) => send(FrameType.hello, { ...HELLO, guest_cid: "9100" })],
    ["a hello with an invalid challenge", (send) => send(FrameType.hello, { ...HELLO, challenge: "0".repeat(63) })],
    ["a hello that is an empty object", (send) => send(FrameType.hello, {})],
    ["a hello that is null", (send) => send(FrameType.hello, JSON.parse("[null]"))],
    [
      "a ready without its nonce",
      (send) => {
        send(FrameType.hello, HELLO);
        send(FrameType.ready, { ok: true });
      },
    ],
  ])("is closed by %s", async (_, commit) => {
    const { link, send } = guest();
    commit(send);
    expect(link.isClosed).toBe(true);
    expect(await link.closed).toMatch(/./);
    expect(() => link.open(REQUEST)).toThrow();
  });

  test("fails if it does not arrive in time", async () => {
    const { link, send } = guest();
    await expect(link.hello(10)).rejects.toThrow(DeadlineError);
    send(FrameType.hello, HELLO);
    await expect(link.welcome(WELCOME, 10, () => {})).rejects.toThrow(DeadlineError);
  });

  test("truncates overlong strings", async () => {
    const { link, send } = guest();
    send(FrameType.hello, { ...HELLO, version: "v".repeat(10_000), nonce: "n".repeat(10_000) });
    const { version, nonce } = await link.hello(1000);
    expect([version.length, nonce.length]).toEqual([64, 64]);
  });

  test("ends when the connection ends", async () => {
    const { link } = guest();
    const hello = link.hello(1000);
    link.close("the guest closed it");
    await expect(hello).rejects.toThrow("the guest closed it");
  });
});

test("the link does not use a decoder after its failure", () => {
  const guest = alone();
  guest.link.receive(Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 0, 0));
  expect(guest.closed).toEqual([expect.stringContaining("frame length 1")]);
});

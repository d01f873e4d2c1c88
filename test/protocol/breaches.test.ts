/** A guest that breaks the protocol: it loses the connection, with the reason, and the host nothing else. */
import { heapStats } from "bun:jsc";
import { describe, expect, test } from "vitest";
import { GuestLink } from "../../daemon/host/guest-link/handshake.ts";
import {
  encodeFrame,
  FrameDecoder,
  FrameError,
  FrameType,
  MAX_PAYLOAD_FROM_HOST,
} from "../../shared/agent-protocol/frame.ts";
import { WINDOW_BYTES } from "../../shared/agent-protocol/link.ts";
import { GENERATION, type Hello, HOST_PORT, type Welcome } from "../../shared/agent-protocol/messages.ts";
import { alone, credit, data, settled } from "./wire.ts";

const REQUEST = { method: "test" };

describe("a breach closes the link, once, and says which it was:", () => {
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
    ["credit that was never taken", /credit beyond/, ({ send }, id) => send(FrameType.credit, id, credit(0, 1))],
    ["credit without bound", /credit beyond/, ({ send }, id) => send(FrameType.credit, id, credit(0, 0xffffffff))],
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
      "events that nobody asked for",
      /unread events/,
      ({ send }, id) => {
        for (let n = 0; n < 1000; n++) send(FrameType.event, id, { n });
      },
    ],
    [
      "events that nobody asked for, few and large",
      /unread events/,
      ({ send }, id) => {
        for (let n = 0; n < 3; n++) send(FrameType.event, id, `[${"0,".repeat(15_000)}0]`);
      },
    ],
    ["an event that is no JSON", /JSON/, ({ send }, id) => send(FrameType.event, id, "{")],
    ["an event that is no UTF-8", /./, ({ send }, id) => send(FrameType.event, id, Uint8Array.of(0x22, 0xff, 0x22))],
    ["a result that is no JSON", /JSON/, ({ send }, id) => send(FrameType.close, id, "nonsense")],
    ["an end without result or error", /without result or error/, ({ send }, id) => send(FrameType.close, id, {})],
    ["an end that is a number", /without result or error/, ({ send }, id) => send(FrameType.close, id, "7")],
    ["data on a stream that never was", /never open/, ({ send }) => send(FrameType.data, 999, data(1, 1))],
    ["the end of a stream that never was", /never open/, ({ send }) => send(FrameType.close, 998, { result: 1 })],
    ["data on no stream", /never open/, ({ send }) => send(FrameType.data, 0, data(1, 1))],
    ["a type on a stream that never was", /type 77 for stream 12/, ({ send }) => send(77, 12)],
    ["a stream under the host's number", /may not be opened/, ({ send }) => send(FrameType.open, 3, REQUEST)],
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
      "a stream of an older number",
      /may not be opened/,
      ({ send }) => {
        send(FrameType.open, 8, REQUEST);
        send(FrameType.open, 6, REQUEST);
      },
    ],
    ["a request that is no JSON", /JSON/, ({ send }) => send(FrameType.open, 2, "{")],
    ["a length that is a lie", /over the limit/, ({ link }) => link.receive(Buffer.alloc(9, 0xff))],
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
  test("is a type of a newer agent on an open stream, or what comes late to one that has ended", () => {
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

  test("is a frame of no bytes: it takes nothing of the window", () => {
    const guest = alone();
    const { id } = guest.link.open(REQUEST);
    for (let n = 0; n < 100_000; n++) guest.send(FrameType.data, id, data(1, 0));
    for (let sent = 0; sent < WINDOW_BYTES; sent += 0x10000) guest.send(FrameType.data, id, data(1, 0x10000));
    expect(guest.closed).toEqual([]);
  });
});

test("a guest may begin no more streams than it is allowed, and is told so", () => {
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
])("a guest that asks for %s and never reads the answers loses the connection before they pile up", (_, ask) => {
  const deaf = alone({ deaf: true, maxPeerStreams: 1 });
  for (let n = 1; n <= 100_000; n++) deaf.send(...ask(n));
  expect(deaf.closed).toEqual([expect.stringMatching(/without reading/)]);
  expect(deaf.sent.length).toBeLessThan(2000);

  const reading = alone({ maxPeerStreams: 1 });
  for (let n = 1; n <= 100_000; n++) reading.send(...ask(n));
  expect(reading.closed).toEqual([]);
});

test("what was received is the host's own: neither changed nor kept alive by the buffer that it came in", async () => {
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

test("what a guest sends within its windows is all that the host holds for it", async () => {
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

test("300 000 frames of every kind close a link or do not, and never do more", () => {
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

  test("ends with the guest's own words when it could not be set up", async () => {
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
    ["a hello whose challenge is none", (send) => send(FrameType.hello, { ...HELLO, challenge: "0".repeat(63) })],
    ["a hello that is nothing", (send) => send(FrameType.hello, {})],
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

  test("that does not come is not waited for beyond its time", async () => {
    const { link, send } = guest();
    await expect(link.hello(10)).rejects.toThrow(/took over 10 ms/);
    send(FrameType.hello, HELLO);
    await expect(link.welcome(WELCOME, 10, () => {})).rejects.toThrow(/took over 10 ms/);
  });

  test("takes of long words what it needs", async () => {
    const { link, send } = guest();
    send(FrameType.hello, { ...HELLO, version: "v".repeat(10_000), nonce: "n".repeat(10_000) });
    const { version, nonce } = await link.hello(1000);
    expect([version.length, nonce.length]).toEqual([64, 64]);
  });

  test("ends when the connection does", async () => {
    const { link } = guest();
    const hello = link.hello(1000);
    link.close("the guest closed it");
    await expect(hello).rejects.toThrow("the guest closed it");
  });
});

test("a decoder that has failed is not used again by the link", () => {
  const guest = alone();
  guest.link.receive(Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 0, 0));
  expect(guest.closed).toEqual([new FrameError("frame length 1 is shorter than its header").message]);
});

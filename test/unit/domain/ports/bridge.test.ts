/** A WebSocket between a client and a server of which one is slow, gone, or wrong. */
import { expect, test } from "vitest";
import type { Peer } from "../../../../daemon/core/concurrency/duplex-session.ts";
import type { OpenPort } from "../../../../daemon/domain/ports/connections.ts";
import { Bridge } from "../../../../daemon/domain/ports/websocket/bridge.ts";
import { Opcode } from "../../../../daemon/domain/ports/websocket/frames.ts";
import { ByteReader } from "../../../../daemon/wire/byte-reader.ts";

const MIB = 1024 * 1024;

class Pretended implements OpenPort, Peer {
  readonly closes: [number, string][] = [];
  readonly written: Uint8Array[] = [];
  readonly got: (string | Uint8Array)[] = [];
  cutBecause: string | null = null;
  isClosed = false;
  readonly #over = Promise.withResolvers<void>();
  readonly ended = this.#over.promise;
  readonly output: AsyncIterable<Uint8Array>;
  /** Settle when the server accepts its bytes, and the client its own. */
  taking: Promise<void> = Promise.resolve();
  reading: Promise<void> = Promise.resolve();
  /** Bytes that are counted as held, and how many there may be. */
  held = 0;
  mostHeld = Number.POSITIVE_INFINITY;

  constructor(output: AsyncIterable<Uint8Array>) {
    this.output = output;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.taking;
    this.written.push(bytes);
  }
  endInput(): void {}
  pay(): null {
    return null;
  }
  hold = (bytes: number): boolean => {
    if (bytes > 0 && this.held + bytes > this.mostHeld) return false;
    this.held += bytes;
    return true;
  };
  /** Both are closed by us. */
  close(code?: number, reason?: string): void {
    if (code !== undefined) this.closes.push([code, reason ?? ""]);
    else {
      this.isClosed = true;
      this.#over.resolve();
    }
  }
  say(text: string): void {
    this.got.push(text);
  }
  async send(message: string | Uint8Array): Promise<void> {
    this.got.push(message);
    await this.reading;
  }
}

/** A bridge between the two, and the messages both receive. */
function bridged(output: AsyncIterable<Uint8Array>, prepare: (both: Pretended) => void = () => {}) {
  const both = new Pretended(output);
  prepare(both);
  const bridge = new Bridge(both, new ByteReader(both.output));
  bridge.start(both);
  return { bridge, both };
}

/** Long enough for everything that only waits for its turn. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
}

async function* frames(...all: number[][]): AsyncGenerator<Uint8Array> {
  for (const each of all) yield Uint8Array.from(each);
}
async function* never(): AsyncGenerator<Uint8Array> {
  await new Promise(() => {});
  yield new Uint8Array(0);
}

test("a client that does not read blocks the server", async () => {
  let made = 0;
  async function* flood(): AsyncGenerator<Uint8Array> {
    while (made < 20) {
      made++;
      yield Uint8Array.from([0x82, 1, 7]);
    }
  }
  const read = Promise.withResolvers<void>();
  const { both } = bridged(flood(), (each) => {
    each.reading = read.promise;
  });
  await turns();
  expect([made, both.got.length]).toEqual([1, 1]);
  read.resolve();
  await turns();
  expect([made, both.got.length]).toEqual([20, 20]);
});

test("a client that sends more than the server reads is closed, with bounded memory", async () => {
  const { bridge, both } = bridged(never(), (each) => {
    each.taking = new Promise(() => {});
  });
  for (let sent = 0; sent < 31; sent++) bridge.take(new Uint8Array(MIB));
  expect(both.closes).toEqual([]);
  bridge.take(new Uint8Array(MIB));
  expect(both.closes).toEqual([[1013, expect.stringContaining("slowly")]]);
  expect(both.isClosed).toBe(true);
  bridge.take(new Uint8Array(MIB));
  await turns();
  expect(both.written).toEqual([]);
});

test("empty messages are charged too", async () => {
  const { bridge, both } = bridged(never(), (each) => {
    each.taking = new Promise(() => {});
  });
  for (let sent = 0; sent < 100_000 && both.closes.length === 0; sent++) bridge.hear("");
  expect(both.closes).toEqual([[1013, expect.stringContaining("slowly")]]);
});

test("waiting bytes count for the sandbox, up to its limit, and are released", async () => {
  const taken = Promise.withResolvers<void>();
  const { bridge, both } = bridged(never(), (each) => {
    each.taking = taken.promise;
    each.mostHeld = 4 * MIB;
  });
  for (let sent = 0; sent < 3; sent++) bridge.take(new Uint8Array(MIB));
  expect([both.held >= 3 * MIB, both.closes]).toEqual([true, []]);
  taken.resolve();
  await turns();
  expect(both.held).toBe(0);
  bridge.take(new Uint8Array(5 * MIB));
  expect(both.closes).toEqual([[1013, expect.stringContaining("slowly")]]);
});

test("only the newest unanswered ping is answered, so that pings use no memory", async () => {
  const taken = Promise.withResolvers<void>();
  let made = 0;
  async function* flood(): AsyncGenerator<Uint8Array> {
    while (made < 1000) yield Uint8Array.from([0x89, 2, made >> 8, made++ & 0xff]);
    await new Promise(() => {});
  }
  const { both } = bridged(flood(), (each) => {
    each.taking = taken.promise;
  });
  await turns();
  expect(made).toBe(1000);
  taken.resolve();
  await turns();
  const answers = both.written.map((frame) => [
    (frame[0] ?? 0) & 0x0f,
    [6, 7].map((at) => (frame[at] ?? 0) ^ (frame[at - 4] ?? 0)),
  ]);
  expect(answers).toEqual([
    [Opcode.pong, [0, 0]],
    [Opcode.pong, [3, 0xe7]],
  ]);
});

test.each<[string, number[][], number]>([
  ["a close with a code", [[0x88, 4, 0x10, 0x92, 0x68, 0x69]], 4242],
  ["a close without one", [[0x88, 0]], 1000],
  ["a close with a code that is only for descriptions", [[0x88, 2, 0x03, 0xed]], 1000],
  ["the end of the connection", [], 1011],
  ["text that is not UTF-8", [[0x81, 2, 0xc3, 0x28]], 1007],
  ["a masked frame", [[0x81, 0x81, 0, 0, 0, 0, 0x61]], 1002],
  ["a message that is too large", [[0x82, 127, 0, 0, 0, 0, 0x10, 0, 0, 0]], 1009],
])("%s from the server closes the client", async (_, all, code) => {
  const { both } = bridged(frames(...all));
  await turns();
  expect(both.closes.map(([each]) => each)).toEqual([code]);
  expect(both.isClosed).toBe(true);
});

test("a close has its reason", async () => {
  const { both } = bridged(frames(), (each) => {
    each.cutBecause = "the port is no longer exposed";
  });
  await turns();
  expect(both.closes).toEqual([[1001, "the port is no longer exposed"]]);
});

test("pings are answered, and are not passed on as messages", async () => {
  const { both } = bridged(frames([0x89, 1, 0x61], [0x8a, 0], [0x81, 1, 0x62]));
  await turns();
  expect(both.got).toEqual(["b"]);
  expect(both.written[0]?.[0]).toBe(0x8a);
});

test("a client's close is sent to the server, once", async () => {
  const { bridge, both } = bridged(never());
  bridge.left(4001, "bye");
  bridge.left(1000, "again");
  bridge.hear("too late");
  await turns();
  expect(both.written.map((each) => each[0])).toEqual([0x88]);
});

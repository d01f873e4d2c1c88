/** Calls on D-Bus: their bytes, the connection that they share, and its failures. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Socket } from "bun";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Bus } from "../../../../daemon/host/confine/bus.ts";
import { encodeCall, lengthOf, type MethodCall, readAnswer } from "../../../../daemon/host/confine/dbus-message.ts";
import { startCall } from "../../../../daemon/host/confine/systemd.ts";

const CALL: MethodCall = {
  destination: "org.example",
  path: "/",
  interface: "org.example",
  member: "Add",
  signature: "ssau",
  body: ["roomd-sbx_1.scope", "", [14, 15]],
};

let scratch = "";
let path = "";
const listeners: { stop(force: boolean): void }[] = [];

beforeEach(() => {
  scratch = mkdtempSync("/tmp/roomd-bus-");
  path = join(scratch, "bus");
});
afterEach(() => {
  for (const listener of listeners.splice(0)) listener.stop(true);
  rmSync(scratch, { recursive: true });
});

/** An answer's bytes. `type` 2 is a return, 3 an error of this name with a text. */
function answerTo(serial: number, type: 2 | 3 = 2, name = "", text = ""): Uint8Array {
  // The header of a reply differs from a call's by its fields only, which are encoded like those of a call.
  const field = (code: number, kind: string, value: Buffer) =>
    Buffer.concat([Buffer.from([code, 1, kind.charCodeAt(0), 0]), value]);
  const padded = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc((8 - (bytes.length % 8)) % 8)]);
  const string = (value: string) => Buffer.concat([uint(value.length), Buffer.from(`${value}\0`)]);
  const uint = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
  };
  const body = type === 3 ? string(text) : Buffer.alloc(0);
  const fields = [field(5, "u", uint(serial)), field(6, "s", string(":1.7"))];
  if (type === 3) fields.push(field(4, "s", string(name)), field(8, "g", Buffer.from("\u0001s\0")));
  const all = Buffer.concat(fields.map((one, index) => (index < fields.length - 1 ? padded(one) : one)));
  const fixed = [Buffer.from(["l".charCodeAt(0), type, 1, 1]), uint(body.length), uint(99), uint(all.length)];
  return Buffer.concat([padded(Buffer.concat([...fixed, all])), body]);
}

/** A bus that accepts every client, and replies with `answer`, which is called with each message other than Hello. */
function serve(answer: (socket: Socket<{ received: Buffer }>, serial: number, message: Buffer) => void): {
  connections: number;
} {
  const served = { connections: 0 };
  listeners.push(
    Bun.listen<{ received: Buffer }>({
      unix: path,
      socket: {
        open: (socket) => {
          served.connections++;
          socket.data = { received: Buffer.alloc(0) };
        },
        data: (socket, bytes) => {
          let received = Buffer.concat([socket.data.received, bytes]);
          const begin = received.indexOf("BEGIN\r\n");
          if (begin >= 0) {
            const uid = Buffer.from(String(process.geteuid?.())).toString("hex");
            expect(received.subarray(0, begin).toString()).toBe(`\0AUTH EXTERNAL ${uid}\r\n`);
            received = received.subarray(begin + 7);
            socket.write("OK 0123456789abcdef\r\n");
          }
          for (let length = lengthOf(received); length !== null && length <= received.length; ) {
            const message = received.subarray(0, length);
            const serial = message.readUInt32LE(8);
            if (message.includes("Hello")) socket.write(answerTo(serial));
            else answer(socket, serial, message);
            received = received.subarray(length);
            length = lengthOf(received);
          }
          socket.data.received = received;
        },
      },
    }),
  );
  return served;
}

test("a call has the bytes that busctl sends, except the flag for interactive authorization", () => {
  const limits = { memory_bytes: 2 ** 30, cpus: 3, tasks: 258, cpu_weight: 100 };
  const bytes = encodeCall(2, startCall("sbx_1", 11, limits));
  expect(bytes.length).toBe(656);
  expect(createHash("sha256").update(bytes).digest("hex")).toBe(
    "037971ffc3f3c0f3a3ea146244b60d6d2faf5e71d7d45911b97cfb0213c49b5f",
  );
  expect(lengthOf(bytes)).toBe(656);
  expect(lengthOf(bytes.subarray(0, 15))).toBeNull();
});

test("an invalid or huge D-Bus message is rejected immediately", () => {
  expect(() => lengthOf(Buffer.from("HTTP/1.1 400 Bad Request"))).toThrow("malformed");
  const huge = Buffer.from(answerTo(1));
  huge.writeUInt32LE(2 ** 30, 4);
  expect(() => lengthOf(huge)).toThrow(/ \d{10} bytes/);
});

test("a reply has the serial of its call, and an error its name", () => {
  expect(readAnswer(answerTo(7))).toEqual({ serial: 7, error: null });
  expect(readAnswer(answerTo(8, 3, "org.example.No", "It is not so."))).toEqual({
    serial: 8,
    error: { name: "org.example.No", message: "It is not so." },
  });
  // A call, as a signal, answers nothing.
  expect(readAnswer(encodeCall(1, CALL))).toBeNull();
});

test("calls share a connection, and each gets its own reply, in any order and pieces", async () => {
  const serials: number[] = [];
  const served = serve((socket, serial, message) => {
    expect(message.includes("roomd-sbx_1.scope")).toBe(true);
    serials.push(serial);
    if (serials.length < 3) return;
    const [first = 0, second = 0, third = 0] = serials;
    const bytes = Buffer.concat([
      answerTo(third, 3, "org.example.No", "third"),
      answerTo(first),
      answerTo(second, 3, "org.example.Other", ""),
    ]);
    socket.write(bytes.subarray(0, 30));
    setTimeout(() => socket.write(bytes.subarray(30)), 5);
  });
  const bus = new Bus(path);
  const outcomes = await Promise.allSettled([bus.call(CALL), bus.call(CALL), bus.call(CALL)]);
  expect(outcomes.map((outcome) => ("reason" in outcome ? outcome.reason : "answered"))).toMatchObject([
    "answered",
    { name: "BusError", error_name: "org.example.Other", message: "Add: org.example.Other" },
    { name: "BusError", error_name: "org.example.No", message: "Add: third" },
  ]);
  expect(served.connections).toBe(1);
});

test("a waiting call fails if the connection closes, and the next call opens another", async () => {
  let closes = true;
  const served = serve((socket, serial) => {
    if (closes) socket.end();
    else socket.write(answerTo(serial));
  });
  const bus = new Bus(path);
  await expect(bus.call(CALL)).rejects.toThrow("closed");
  closes = false;
  await bus.call(CALL);
  await bus.call(CALL);
  expect(served.connections).toBe(2);
});

test("without a bus a call fails, and the next one connects again", async () => {
  const bus = new Bus(path);
  await expect(bus.call(CALL)).rejects.toThrow();
  serve((socket, serial) => socket.write(answerTo(serial)));
  await bus.call(CALL);
});

test("a bus that rejects the client or violates the protocol is disconnected", async () => {
  let says = "REJECTED EXTERNAL\r\n";
  listeners.push(Bun.listen({ unix: path, socket: { data: (socket) => void socket.write(says) } }));
  const bus = new Bus(path);
  await expect(bus.call(CALL)).rejects.toThrow("REJECTED");
  says = "OK 0123\r\nGET / HTTP/1.1\r\n\r\n";
  await expect(bus.call(CALL)).rejects.toThrow("malformed");
});

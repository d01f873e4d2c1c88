/**
 * Calls on the system's D-Bus, over one persistent connection: a program started for each call would take ten times as long as systemd
 * takes to answer. A closed connection is reopened for the next call.
 */
import type { Socket } from "bun";
import { within } from "../../core/concurrency/published.ts";
import { encodeCall, lengthOf, type MethodCall, readAnswer } from "./dbus-message.ts";

const SYSTEM_BUS = "/run/dbus/system_bus_socket";
const DEADLINE_MS = 10_000;
const HELLO: MethodCall = {
  destination: "org.freedesktop.DBus",
  path: "/org/freedesktop/DBus",
  interface: "org.freedesktop.DBus",
  member: "Hello",
  signature: "",
  body: [],
};

/** The call was refused; `error_name` is D-Bus's name of the error. */
export class BusError extends Error {
  override name = "BusError";
  readonly error_name: string;

  constructor(call: string, error: { name: string; message: string }) {
    super(`${call}: ${error.message || error.name}`);
    this.error_name = error.name;
  }
}

export class Bus {
  readonly #path: string;
  #connection: Connection | null = null;

  constructor(path = SYSTEM_BUS) {
    this.#path = path;
  }

  /** Calls a method; resolves when it is answered, without the content. Calls arrive in order. Throws BusError. */
  async call(call: MethodCall): Promise<void> {
    if (this.#connection === null || this.#connection.isClosed) this.#connection = new Connection(this.#path);
    await within(this.#connection.call(call), DEADLINE_MS, call.member);
  }
}

class Connection {
  readonly #opened: Promise<Socket<undefined>>;
  readonly #pending = new Map<number, ReturnType<typeof Promise.withResolvers<void>> & { member: string }>();
  #received: Uint8Array = new Uint8Array();
  #isAccepted = false;
  #lastSerial = 0;
  #closed: Error | null = null;

  constructor(path: string) {
    this.#opened = Bun.connect({
      unix: path,
      socket: {
        open: (socket) => {
          // Our user, which the kernel reports to the other side; the following messages need not wait for its consent.
          const uid = Buffer.from(String(process.geteuid?.() ?? 0)).toString("hex");
          socket.write(`\0AUTH EXTERNAL ${uid}\r\nBEGIN\r\n`);
          this.#send(socket, HELLO).catch(() => {});
        },
        data: (_socket, bytes) => this.#receive(bytes),
        close: () => this.#end(new Error("D-Bus has closed the connection")),
        error: (socket, error) => {
          this.#end(error);
          socket.terminate();
        },
      },
    });
    this.#opened.catch((error: Error) => this.#end(error));
  }

  get isClosed(): boolean {
    return this.#closed !== null;
  }

  async call(call: MethodCall): Promise<void> {
    const socket = await this.#opened;
    await this.#send(socket, call);
  }

  async #send(socket: Socket<undefined>, call: MethodCall): Promise<void> {
    if (this.#closed) throw this.#closed;
    const serial = ++this.#lastSerial;
    const bytes = encodeCall(serial, call);
    const answer = { ...Promise.withResolvers<void>(), member: call.member };
    this.#pending.set(serial, answer);
    // The socket keeps the process alive only while a call awaits its answer.
    socket.ref();
    if (socket.write(bytes) < bytes.length) {
      this.#end(new Error("D-Bus does not read its input"));
      socket.terminate();
    }
    try {
      await answer.promise;
    } finally {
      this.#pending.delete(serial);
      if (this.#pending.size === 0) socket.unref();
    }
  }

  #receive(bytes: Uint8Array): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    if (!this.#isAccepted && !this.#accept()) return;
    for (let length = lengthOf(this.#received); length !== null; length = lengthOf(this.#received)) {
      if (this.#received.length < length) return;
      const answer = readAnswer(this.#received.slice(0, length));
      this.#received = this.#received.slice(length);
      const waiting = answer && this.#pending.get(answer.serial);
      if (!waiting) continue;
      if (answer.error === null) waiting.resolve();
      else waiting.reject(new BusError(waiting.member, answer.error));
    }
  }

  /** Processes the one line that precedes all messages. */
  #accept(): boolean {
    const end = Buffer.from(this.#received).indexOf("\r\n");
    if (end < 0) return false;
    const line = Buffer.from(this.#received.slice(0, end)).toString();
    if (!line.startsWith("OK ")) throw new Error(`D-Bus rejected the authentication: ${line.slice(0, 200)}`);
    this.#received = this.#received.slice(end + 2);
    this.#isAccepted = true;
    return true;
  }

  #end(why: Error): void {
    this.#closed ??= why;
    for (const { reject } of this.#pending.values()) reject(this.#closed);
  }
}

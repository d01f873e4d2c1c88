/**
 * One connection to another host: mutual TLS, and no byte of a request before the peer has shown exactly the certificate that it joined
 * with. It carries one exchange at a time.
 *
 *     connecting ──▶ idle ──begin──▶ taken ──keep──▶ idle
 *         └──────────────┴──────────────┴── closed by either side ──▶ closed
 */
import { constants } from "node:crypto";
import type { Socket } from "bun";
import { StreamError } from "../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { monotonicMs } from "../../core/clock.ts";
import { stallTolerantTimeout } from "../../core/concurrency/stall-tolerant-timeout.ts";
import type { Certificate } from "../../core/config/certificate.ts";
import type { OpenPort } from "../../domain/ports/connections.ts";

/** Received bytes that were not read: above this, the peer is paused. */
const MAX_UNTAKEN_BYTES = 1024 * 1024;
/** Idle time before TCP keepalive probes, which detect a dead host ten seconds later. */
const KEEP_ALIVE_MS = 5000;
/** Both sides run roomd, so no older TLS version is needed. */
export const TLS_1_3_ONLY = constants.SSL_OP_NO_TLSv1 | constants.SSL_OP_NO_TLSv1_1 | constants.SSL_OP_NO_TLSv1_2;

export interface Goal {
  hostname: string;
  port: number;
  /** The certificate that the peer must show, as DER. */
  certificate: Buffer;
}

/** A connection for the duration of one exchange. */
export interface Line extends OpenPort {
  /** Whether the other side may have seen a byte of the exchange. */
  readonly isSeen: boolean;
  /** The exchange is over, and no bytes of it remain on the connection. */
  keep(): void;
}

/** Why there is no connection. broken: the process that had accepted it may have been replaced at that moment. */
type NotConnectedWhy = "silent" | "refused" | "broken" | "another host";

export class NotConnected extends Error {
  override name = "NotConnected";
  readonly why: NotConnectedWhy;
  constructor(why: NotConnectedWhy, message: string, cause?: unknown) {
    super(message, { cause });
    this.why = why;
  }
}

/** Rejects with NotConnected. */
export function connectToHost(goal: Goal, own: Certificate, withinMs: number): Promise<Connection> {
  const { promise, resolve, reject } = Promise.withResolvers<Connection>();
  let socket: Socket | null = null;
  let connection: Connection | null = null;
  const fail = (why: NotConnectedWhy, message: string, cause?: unknown) => {
    endTime();
    reject(new NotConnected(why, message, cause));
    if (connection === null) socket?.terminate();
  };
  const endTime = stallTolerantTimeout(withinMs, () => fail("silent", `no connection within ${withinMs} ms`));
  let isLate = false;
  promise.catch(() => {
    isLate = true;
  });
  const connecting = Bun.connect({
    hostname: goal.hostname,
    port: goal.port,
    // The certificate is compared below: no authority and no name in it proves more than that.
    tls: { cert: own.cert, key: own.key, rejectUnauthorized: false, secureOptions: TLS_1_3_ONLY },
    socket: {
      open: (opened) => {
        socket = opened;
        if (isLate) opened.terminate();
      },
      handshake: (opened) => {
        const shown = opened.getPeerCertificate()?.raw;
        if (isLate || !shown?.equals(goal.certificate)) {
          opened.terminate();
          return fail("another host", "its certificate differs from the one that it joined with");
        }
        endTime();
        opened.setNoDelay(true);
        opened.setKeepAlive(true, KEEP_ALIVE_MS);
        connection = new Connection(opened);
        resolve(connection);
      },
      data: (_, bytes) => connection?.hear(bytes),
      drain: () => connection?.drained(),
      error: (_, error) => connection?.fails(error),
      close: (_, error) => {
        connection?.ends();
        fail("broken", "the connection ended before it began", error);
      },
    },
  });
  connecting.catch((error: unknown) => fail("refused", "there is no connection to it", error));
  return promise;
}

export class Connection {
  readonly #socket: Socket;
  readonly #came: Uint8Array[] = [];
  #untaken = 0;
  #isPaused = false;
  /** The waiters for bytes, and for room to write. */
  #more: PromiseWithResolvers<void> | null = null;
  #room: PromiseWithResolvers<void> | null = null;
  #line: { ends(error: unknown): void } | null = null;
  /** The error of the connection, if one was reported. */
  #error: unknown = null;
  isClosed = false;
  /** When the peer last sent or read something; initially the time of the connection. */
  heardAt = monotonicMs();
  /** Called when it is closed, by either side. */
  onClosed: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Takes it for an exchange. */
  begin(): Line {
    const ended = Promise.withResolvers<void>();
    ended.promise.catch(() => {});
    let isSeen = false;
    let isOver = false;
    const state = {
      ends: (error: unknown) => {
        isOver = true;
        this.#line = null;
        if (error) ended.reject(error);
        else ended.resolve();
      },
    };
    this.#line = state;
    const close = () => {
      if (isOver) return;
      state.ends(new StreamError({ code: StreamErrorCode.detached, message: "the connection was closed" }));
      this.close();
    };
    return {
      output: { [Symbol.asyncIterator]: () => ({ next: () => this.#next() }) },
      write: async (bytes) => {
        if (isOver) throw new Error("the exchange is over");
        await this.#write(bytes, () => {
          isSeen = true;
        });
      },
      endInput: close,
      ended: ended.promise,
      close,
      keep: () => {
        if (isOver) return;
        // Bytes after the end of the answer would be read as part of the next answer.
        if (this.#came.length > 0) close();
        else state.ends(null);
      },
      get isSeen() {
        return isSeen;
      },
      cutBecause: null,
      pay: () => null,
      hold: () => true,
    };
  }

  hear(bytes: Uint8Array): void {
    this.heardAt = monotonicMs();
    // Bytes outside of an exchange answer no request.
    if (this.#line === null) {
      this.close();
      return;
    }
    this.#came.push(bytes);
    this.#untaken += bytes.byteLength;
    if (this.#untaken > MAX_UNTAKEN_BYTES && !this.#isPaused) {
      this.#isPaused = true;
      this.#socket.pause();
    }
    this.#more?.resolve();
  }

  drained(): void {
    this.heardAt = monotonicMs();
    this.#room?.resolve();
  }

  fails(error: unknown): void {
    this.#error ??= error;
  }

  /** The peer has closed it, or it broke. Bytes received before are still read. */
  ends(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#line?.ends(this.#error ?? new Error("the connection ended"));
    this.#more?.resolve();
    this.#room?.resolve();
    this.onClosed();
  }

  /** Closes immediately: data in transit, either way, is lost. */
  close(): void {
    if (this.isClosed) return;
    this.#came.length = 0;
    this.#untaken = 0;
    this.ends();
    this.#socket.terminate();
  }

  async #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    while (this.#came.length === 0) {
      if (this.isClosed) return { done: true, value: undefined };
      this.#more = Promise.withResolvers();
      await this.#more.promise;
      this.#more = null;
    }
    const value = this.#came.shift() ?? new Uint8Array(0);
    this.#untaken -= value.byteLength;
    if (this.#isPaused && this.#untaken === 0 && !this.isClosed) {
      this.#isPaused = false;
      this.#socket.resume();
    }
    return { done: false, value };
  }

  /** Resolves once the kernel has accepted all bytes; calls `seen` after each part that it accepts. */
  async #write(bytes: Uint8Array, seen: () => void): Promise<void> {
    for (let at = 0; ; ) {
      if (this.isClosed) throw new Error("the connection is closed", { cause: this.#error });
      const taken = this.#socket.write(bytes, at, bytes.byteLength - at);
      if (taken > 0) {
        seen();
        at += taken;
      }
      if (at === bytes.byteLength) return;
      this.#room = Promise.withResolvers();
      await this.#room.promise;
      this.#room = null;
    }
  }
}

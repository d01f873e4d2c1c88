/**
 * Connection to QEMU's monitor (QMP): commands, their answers, and events. An invalid message (qmp-message.ts) ends the connection, and
 * machine.ts then ends that QEMU.
 */
import type { Socket } from "bun";
import { DeadlineError, within } from "../../core/concurrency/published.ts";
import { describeError } from "../../core/service-error.ts";
import { connectWhenThere } from "../unix-socket.ts";
import { NonsenseError, type QmpEvent, QmpLines, type QmpMessage, readMessage } from "./qmp-message.ts";

export type { QmpEvent };

export class QmpError extends Error {
  override name = "QmpError";
}

/** Cause of the connection's end: we closed it, QEMU did, or it sent an invalid message. */
export type QmpEnd = { by: "us" | "qemu" } | { by: "nonsense"; error: NonsenseError };

const COMMAND_DEADLINE_MS = 30_000;

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export class Qmp {
  #socket: Socket<undefined> | null = null;
  readonly #lines = new QmpLines();
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  readonly #greeted = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<QmpEnd>();
  #nextId = 1;
  #isClosed = false;
  /** Whether arriving answers can only be ours: before that an answer to an earlier client may still be on its way. */
  #isOurs = false;

  /**
   * Connects to the monitor as soon as it exists, and consumes the greeting. Throws NonsenseError when the peer is no QEMU, and
   * DeadlineError when no greeting arrives.
   */
  static async connect(path: string, deadlineMs: number, processEnd: Promise<unknown>): Promise<Qmp> {
    const qmp = new Qmp();
    qmp.#socket = await connectWhenThere(path, deadlineMs, processEnd, {
      data: (_socket, chunk) => {
        for (const line of qmp.#lines.push(chunk)) qmp.#receive(readMessage(line));
      },
      close: () => qmp.#end({ by: "qemu" }),
      error: (_socket, error) => qmp.#distrust(error),
    });
    try {
      await within(Promise.race([qmp.#greeted.promise, qmp.closed]), deadlineMs, "QEMU's greeting");
      await qmp.execute("qmp_capabilities", {}, deadlineMs);
      qmp.#isOurs = true;
      return qmp;
    } catch (error) {
      qmp.close();
      const end = await qmp.closed;
      throw end.by === "nonsense" ? end.error : error;
    }
  }

  /** Resolves when the connection has ended, with the cause. */
  get closed(): Promise<QmpEnd> {
    return this.#closed.promise;
  }

  /** Executes a command. Rejects with QmpError when QEMU refuses it or ends. */
  execute(command: string, args: Record<string, unknown> = {}, deadlineMs = COMMAND_DEADLINE_MS): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new QmpError(`${command}: QEMU has ended`));
    const id = this.#nextId++;
    const answer = new Promise((resolve, reject) => {
      this.#pending.set(id, {
        resolve,
        reject: (error) => reject(new QmpError(`${command}: ${error.message}`)),
      });
      this.#socket?.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    });
    return within(answer, deadlineMs, `QMP ${command}`).finally(() => this.#pending.delete(id));
  }

  onEvent(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves with the next matching event. Call it before the command that causes the event. */
  nextEvent(fits: (event: QmpEvent) => boolean, deadlineMs: number): Promise<QmpEvent> {
    let stop = () => {};
    const next = new Promise<QmpEvent>((resolve, reject) => {
      const unlisten = this.onEvent((event) => {
        if (fits(event)) resolve(event);
      });
      stop = () => {
        unlisten();
        reject(new DeadlineError("given up"));
      };
      this.closed.then(() => reject(new QmpError("QEMU has ended")));
    });
    next.catch(() => {});
    return within(next, deadlineMs, "an event of QEMU").finally(() => stop());
  }

  close(): void {
    this.#end({ by: "us" });
  }

  #receive(message: QmpMessage): void {
    if (message.kind === "greeting") this.#greeted.resolve();
    else if (message.kind === "event") for (const listener of [...this.#listeners]) listener(message);
    else this.#answer(message);
  }

  #answer(message: Exclude<QmpMessage, { kind: "greeting" | "event" }>): void {
    const isAsked = message.id >= 1 && message.id < this.#nextId;
    if (this.#isOurs && !isAsked) throw new NonsenseError("it answered an unknown request");
    const pending = this.#pending.get(message.id);
    if (message.kind === "return") pending?.resolve(message.value);
    else pending?.reject(new QmpError(message.message));
  }

  /** After an error in parsing, no further data of the connection is reliable. */
  #distrust(error: Error): void {
    const nonsense = error instanceof NonsenseError ? error : new NonsenseError(describeError(error), { cause: error });
    this.#end({ by: "nonsense", error: nonsense });
  }

  #end(end: QmpEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const why = end.by === "nonsense" ? end.error.message : "QEMU has ended";
    for (const pending of this.#pending.values()) pending.reject(new QmpError(why));
    this.#pending.clear();
    this.#closed.resolve(end);
    this.#socket?.terminate();
  }
}

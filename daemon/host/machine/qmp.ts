/** Owns the conversation with QEMU's monitor (QMP): commands, their answers, and events. */
import type { Socket } from "bun";
import { DeadlineError, within } from "../../core/published.ts";
import { connectWhenThere } from "../unix-socket.ts";

export interface QmpEvent {
  event: string;
  data: Record<string, unknown>;
}

export class QmpError extends Error {
  override name = "QmpError";
}

/** No answer of QEMU is longer; one that is means that it is not QEMU. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const COMMAND_DEADLINE_MS = 30_000;

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export class Qmp {
  #socket: Socket<undefined> | null = null;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  readonly #closed = Promise.withResolvers<void>();
  #nextId = 1;
  #isClosed = false;

  /** Connects to the monitor as soon as it is there, and leaves the greeting behind. */
  static async connect(path: string, deadlineMs: number, gone: Promise<unknown>): Promise<Qmp> {
    const greeted = Promise.withResolvers<void>();
    const qmp = new Qmp();
    let text = "";
    const decoder = new TextDecoder();
    qmp.#socket = await connectWhenThere(path, deadlineMs, gone, {
      data: (socket, chunk) => {
        text += decoder.decode(chunk, { stream: true });
        const lines = text.split("\n");
        text = lines.pop() ?? "";
        if (text.length > MAX_LINE_BYTES) socket.end();
        for (const line of lines) {
          if (line.includes('"QMP"') && line.startsWith('{"QMP"')) greeted.resolve();
          else if (line.trim() !== "") qmp.#receive(JSON.parse(line) as Record<string, unknown>);
        }
      },
      close: () => qmp.#end(),
    });
    try {
      await within(Promise.race([greeted.promise, qmp.closed]), deadlineMs, "QEMU's greeting");
      await qmp.execute("qmp_capabilities", {}, deadlineMs);
      return qmp;
    } catch (error) {
      qmp.close();
      throw error;
    }
  }

  /** Resolves when the connection has ended, which is when QEMU has. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Carries out a command. Rejects with QmpError when QEMU refuses it or ends. */
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

  /** Resolves with the next event that fits. Listen before the command that causes it. */
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
    this.#socket?.end();
  }

  #receive(message: Record<string, unknown>): void {
    if (typeof message.event === "string") {
      const event = { event: message.event, data: (message.data ?? {}) as Record<string, unknown> };
      for (const listener of [...this.#listeners]) listener(event);
      return;
    }
    const pending = this.#pending.get(Number(message.id));
    if (!pending) return;
    if ("return" in message) pending.resolve(message.return);
    else
      pending.reject(new QmpError(String((message.error as { desc?: unknown } | undefined)?.desc ?? "unknown error")));
  }

  #end(): void {
    this.#isClosed = true;
    for (const pending of this.#pending.values()) pending.reject(new QmpError("QEMU has ended"));
    this.#pending.clear();
    this.#closed.resolve();
  }
}

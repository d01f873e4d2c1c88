/** Terminals of a sandbox by E2B's interface. Typing needs a WebSocket: Node 22 or later, or Bun. */
import type { Sandbox as NativeSandbox } from "../sandbox.ts";
import type { AttachedTerminal, Terminal } from "../terminal.ts";
import { HOME } from "./commands.ts";
import { NotFoundError, translated, translating, unlessMissing } from "./errors.ts";

/** Size of a terminal, and how its output is received. */
export interface PtyCreateOpts {
  cols: number;
  rows: number;
  onData(data: Uint8Array): void | Promise<void>;
  user?: string;
  cwd?: string;
}

/** A terminal that this program reads. */
export interface PtyHandle {
  readonly pid: number;
  /** Resolves when it has ended. */
  wait(): Promise<void>;
  disconnect(): Promise<void>;
  kill(): Promise<boolean>;
}

interface HeldTerminal {
  terminal: Terminal;
  attached: AttachedTerminal;
}

/** Opens terminals and writes to them. This object assigns their numbers. */
export class Pty {
  readonly #sandbox: NativeSandbox;
  readonly #held = new Map<number, HeldTerminal>();

  /** The terminals of a sandbox. */
  constructor(sandbox: NativeSandbox) {
    this.#sandbox = sandbox;
  }

  /** Opens a login shell. */
  create({ cols, rows, onData, user, cwd = HOME }: PtyCreateOpts): Promise<PtyHandle> {
    return translating(async () => {
      const userField = user === undefined || user === "user" ? {} : { user };
      const terminal = await this.#sandbox.openTerminal({ cols, rows, cwd, ...userField });
      const attached = await terminal.attach();
      const pid = this.#held.size + 1;
      this.#held.set(pid, { terminal, attached });
      const ended = read(attached, onData);
      // Rejections are handled by `wait`, if it is called.
      ended.catch(() => {});
      return {
        pid,
        wait: () => ended,
        disconnect: async () => attached.close(),
        kill: () => this.kill(pid),
      };
    });
  }

  /** Types into a terminal. */
  async sendInput(pid: number, data: Uint8Array): Promise<void> {
    this.#get(pid).attached.write(data);
  }

  /** Changes its size. */
  async resize(pid: number, { cols, rows }: { cols: number; rows: number }): Promise<void> {
    this.#get(pid).attached.resize(rows, cols);
  }

  /** Ends a terminal and its processes. False if it has already ended. */
  kill(pid: number): Promise<boolean> {
    const { terminal } = this.#get(pid);
    return unlessMissing(() => terminal.end());
  }

  #get(pid: number): HeldTerminal {
    const held = this.#held.get(pid);
    if (held === undefined) throw new NotFoundError(`There is no terminal ${pid}.`);
    return held;
  }
}

async function read(attached: AttachedTerminal, onData: PtyCreateOpts["onData"]): Promise<void> {
  try {
    for await (const bytes of attached.output) await onData(bytes);
  } catch (error) {
    throw translated(error);
  }
}

/** The owner's side of a forwarded channel: its command in the guest, and its streams in both directions. */

import { MAX_SCREEN_ROWS_OR_COLS } from "../../../../shared/api/ssh.ts";
import type { CommandEnd, LiveCommand } from "../../../host/guest-link/command.ts";
import type { GuestPort } from "../../../host/guest-link/connect.ts";
import type { SessionContext } from "../session-context.ts";
import type { SessionKind } from "../session-opening.ts";
import { type FromOwner, frameOf, Stream } from "./messages.ts";
import { Inlet, Outlet } from "./window.ts";

const BEGUN: readonly unknown[] = ["exec", "shell", "sftp"] satisfies SessionKind[];
const DONE: CommandEnd = { exit_code: 0, signal: null };

export interface OwnerChannelDeps {
  visit: SessionContext;
  say(message: FromOwner): void;
  send(frame: Uint8Array): Promise<void>;
}

export class OwnerChannel {
  readonly #id: number;
  readonly #deps: OwnerChannelDeps;
  readonly #input: Inlet;
  readonly #output: Outlet;
  readonly #errors: Outlet;
  #command: LiveCommand | null = null;
  #isGone = false;

  constructor(id: number, deps: OwnerChannelDeps) {
    this.#id = id;
    this.#deps = deps;
    const { say, send } = deps;
    this.#input = new Inlet((bytes) => say({ type: "taken", channel: id, stream: Stream.input, bytes }));
    this.#output = new Outlet((bytes) => send(frameOf(id, Stream.output, bytes)));
    this.#errors = new Outlet((bytes) => send(frameOf(id, Stream.errors, bytes)));
  }

  /** Resolves once the channel is over, for any reason. */
  async serve(kind: unknown, fields: Record<string, unknown>): Promise<void> {
    const { say } = this.#deps;
    const refused = await this.#begin(kind, fields);
    const command = this.#command;
    if (refused !== null || !command || this.#isGone) {
      // A started command that could not be recorded is refused.
      command?.hangUp();
      return say({ type: "refused", channel: this.#id, detail: refused ?? "nothing was started" });
    }
    say({ type: "opened", channel: this.#id, has_errors: command.stderr !== null });
    void this.#feed(command);
    try {
      await Promise.all([
        this.#drain(command.stdout, this.#output, Stream.output),
        command.stderr && this.#drain(command.stderr, this.#errors, Stream.errors),
      ]);
      say({ type: "ended", channel: this.#id, end: await command.ended });
    } catch {
      say({ type: "lost", channel: this.#id, why: this.#deps.visit.whyLost() });
    } finally {
      this.#close();
    }
  }

  /** False: the bytes exceed the window, or the stream is not the input. */
  take(stream: number, bytes: Uint8Array): boolean {
    return stream === Stream.input && this.#input.push(bytes);
  }

  taken(stream: Stream, bytes: number): void {
    if (stream === Stream.output) this.#output.taken(bytes);
    if (stream === Stream.errors) this.#errors.taken(bytes);
  }

  endInput(): void {
    this.#input.end();
  }

  signal(name: string): void {
    this.#command?.signal(name);
  }

  resize(rows: number, cols: number): void {
    const isSize = (size: number) => Number.isSafeInteger(size) && size >= 1 && size <= MAX_SCREEN_ROWS_OR_COLS;
    if (isSize(rows) && isSize(cols)) this.#command?.resize(rows, cols);
  }

  /** The client is gone. */
  hangUp(): void {
    if (this.#isGone) return;
    this.#close();
    this.#command?.hangUp();
  }

  #close(): void {
    this.#isGone = true;
    this.#input.end();
    this.#output.close();
    this.#errors.close();
  }

  async #begin(kind: unknown, fields: Record<string, unknown>): Promise<string | null> {
    const { visit } = this.#deps;
    if (kind === "forward") {
      return await visit.forward(fields, (port) => {
        this.#command = asCommand(port);
      });
    }
    if (!BEGUN.includes(kind)) return "The channel does not exist.";
    return await visit.begin(kind as SessionKind, fields, (command) => {
      this.#command = command;
    });
  }

  async #feed(command: LiveCommand): Promise<void> {
    try {
      for await (const bytes of this.#input) {
        this.#deps.visit.countIn(bytes.byteLength);
        // A command that no longer reads its input is not blocked.
        await command.write(bytes).catch(() => {});
      }
    } finally {
      if (!this.#isGone) command.endInput();
    }
  }

  async #drain(from: AsyncIterable<Uint8Array>, to: Outlet, stream: Stream): Promise<void> {
    for await (const bytes of from) {
      this.#deps.visit.countOut(bytes.byteLength);
      if (!(await to.write(bytes))) return;
    }
    this.#deps.say({ type: "end", channel: this.#id, stream });
  }
}

/** A connection to a port in the form of a command without signals. */
function asCommand(port: GuestPort): LiveCommand {
  return {
    stdout: port.output,
    stderr: null,
    write: port.write,
    endInput: port.endInput,
    signal: () => {},
    resize: () => {},
    ended: port.ended.then(() => DONE),
    hangUp: port.close,
  };
}

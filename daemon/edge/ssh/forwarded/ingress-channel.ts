/** The entry host's side of a forwarded channel: represents the remote command or port as a local one. */
import type { CommandEnd, LiveCommand } from "../../../host/guest-link/command.ts";
import type { GuestPort } from "../../../host/guest-link/connect.ts";
import { SessionOver } from "../session-opening.ts";
import { type FromEntry, type FromOwner, frameOf, Stream } from "./messages.ts";
import { Inlet, Outlet } from "./window.ts";

export interface IngressChannelDeps {
  say(message: FromEntry): void;
  send(frame: Uint8Array): Promise<void>;
}

type OfChannel = Extract<FromOwner, { channel: number }>;

export class IngressChannel {
  readonly #id: number;
  readonly #deps: IngressChannelDeps;
  readonly #input: Outlet;
  readonly #output: Inlet;
  readonly #errors: Inlet;
  readonly #started = Promise.withResolvers<string | null>();
  readonly #ended = Promise.withResolvers<CommandEnd>();
  readonly #over = Promise.withResolvers<void>();
  #hasErrors = false;

  constructor(id: number, deps: IngressChannelDeps) {
    this.#id = id;
    this.#deps = deps;
    const { say, send } = deps;
    const taken = (stream: Stream) => (bytes: number) => say({ type: "taken", channel: id, stream, bytes });
    this.#input = new Outlet((bytes) => send(frameOf(id, Stream.input, bytes)));
    this.#output = new Inlet(taken(Stream.output));
    this.#errors = new Inlet(taken(Stream.errors));
    this.#ended.promise.catch(() => {});
  }

  /** Resolves to the reason of a refusal, or null. */
  get started(): Promise<string | null> {
    return this.#started.promise;
  }

  /** Resolves after the last message about it. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  get command(): LiveCommand {
    const { say } = this.#deps;
    const channel = this.#id;
    return {
      stdout: this.#output,
      stderr: this.#hasErrors ? this.#errors : null,
      write: (bytes) => this.#write(bytes),
      endInput: () => say({ type: "end", channel, stream: Stream.input }),
      signal: (name) => say({ type: "signal", channel, name }),
      resize: (rows, cols) => say({ type: "resize", channel, rows, cols }),
      ended: this.#ended.promise,
      hangUp: () => this.#hangUp(),
    };
  }

  get port(): GuestPort {
    const { stdout, write, endInput, ended, hangUp } = this.command;
    return { output: stdout, write, endInput, ended: ended.then(() => {}), close: hangUp };
  }

  /** False: the bytes exceed the window, or the channel has no such stream. */
  push(stream: number, bytes: Uint8Array): boolean {
    if (stream === Stream.output) return this.#output.push(bytes);
    return stream === Stream.errors && this.#errors.push(bytes);
  }

  hear(message: OfChannel): void {
    if (message.type === "opened") {
      this.#hasErrors = message.has_errors;
      this.#started.resolve(null);
    } else if (message.type === "refused") {
      this.#started.resolve(message.detail);
      this.#close(null);
    } else if (message.type === "taken") this.#input.taken(message.bytes);
    else if (message.type === "end") (message.stream === Stream.errors ? this.#errors : this.#output).end();
    else if (message.type === "lost") this.end(lost(message.why));
    else if (message.type === "ended") {
      this.#ended.resolve(message.end);
      this.#close(null);
    }
  }

  /** Ends it for a reason other than its user's action. */
  end(error: Error): void {
    this.#started.resolve(error.message);
    this.#ended.reject(error);
    this.#close(error);
  }

  #hangUp(): void {
    this.#deps.say({ type: "hang_up", channel: this.#id });
    this.end(new Error("the client has disconnected"));
  }

  #close(error: Error | null): void {
    this.#input.close();
    this.#output.end(error);
    this.#errors.end(error);
    this.#over.resolve();
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (!(await this.#input.write(bytes))) throw new Error("the channel no longer accepts input");
  }
}

/** With the reason from its own host. */
function lost(why: string | undefined): Error {
  return why === undefined ? new Error("the guest was lost") : new SessionOver(why);
}

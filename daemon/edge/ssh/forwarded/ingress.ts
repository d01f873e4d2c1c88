/** A session that this host forwards to the room's host: its login there, and its channels, as if they were opened here. */
import type { Problem } from "../../../../shared/api/errors.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { LiveCommand } from "../../../host/guest-link/command.ts";
import type { GuestPort } from "../../../host/guest-link/connect.ts";
import type { Reached } from "../../hosts/client.ts";
import { type HostSocket, MAX_MESSAGE_BYTES } from "../../hosts/ssh.ts";
import { type Opening, type SessionKind, SessionOver } from "../session-opening.ts";
import { IngressChannel } from "./ingress-channel.ts";
import { type FromEntry, type FromOwner, type Login, readFrame, readMessage } from "./messages.ts";

export class Ingress implements Opening {
  readonly #socket: HostSocket;
  readonly #host: Reached;
  readonly #channels = new Map<number, IngressChannel>();
  readonly #welcome = Promise.withResolvers<{ org_id: OrgId } | { problem: Problem }>();
  readonly #over = Promise.withResolvers<string>();
  #isOver = false;
  #next = 0;

  /** Logs in at the host. Resolves to the reason of a refusal, or to the session. Rejects with host_unreachable. */
  static async begin(
    socket: HostSocket,
    host: Reached,
    login: Omit<Login, "type">,
    signal: AbortSignal,
  ): Promise<{ session: Ingress; org_id: OrgId } | { problem: Problem }> {
    const session = new Ingress(socket, host);
    signal.addEventListener("abort", () => session.close(), { once: true });
    if (signal.aborted) session.close();
    void session.#listen();
    session.#say({ type: "login", ...login });
    const answer = await session.#welcome.promise;
    return "problem" in answer ? answer : { session, org_id: answer.org_id };
  }

  private constructor(socket: HostSocket, host: Reached) {
    this.#socket = socket;
    this.#host = host;
    this.#welcome.promise.catch(() => {});
  }

  /** Resolves to a sentence for the user once the session is over, unless this host has ended it. */
  get over(): Promise<string> {
    return this.#over.promise;
  }

  async begin(kind: SessionKind, fields: Record<string, unknown>, take: (command: LiveCommand) => void) {
    return await this.#open(kind, fields, (channel) => take(channel.command));
  }

  async forward(fields: Record<string, unknown>, take: (port: GuestPort) => void) {
    return await this.#open("forward", fields, (channel) => take(channel.port));
  }

  /** The default for hosts that send no reason. */
  whyLost(): string {
    return "the guest was lost";
  }

  /** The client has gone. */
  close(): void {
    if (this.#isOver) return;
    this.#end("The session has ended.");
    this.#socket.close();
  }

  async #open(
    kind: SessionKind | "forward",
    fields: Record<string, unknown>,
    take: (channel: IngressChannel) => void,
  ): Promise<string | null> {
    if (this.#isOver) return "The session has ended.";
    const id = this.#next++;
    const message = JSON.stringify({ type: "open", channel: id, what: kind, fields } satisfies FromEntry);
    if (Buffer.byteLength(message) > MAX_MESSAGE_BYTES) return "The command and its environment are too large.";
    const channel = new IngressChannel(id, {
      say: (outgoing) => this.#say(outgoing),
      send: (frame) => this.#socket.send(frame),
    });
    this.#channels.set(id, channel);
    void channel.over.then(() => this.#channels.delete(id));
    this.#sendText(message);
    const refused = await channel.started;
    if (refused === null) take(channel);
    return refused;
  }

  #say(message: FromEntry): void {
    if (!this.#isOver) this.#sendText(JSON.stringify(message));
  }

  #sendText(text: string): void {
    // A failure is detected by the reader.
    this.#socket.send(text).catch(() => {});
  }

  async #listen(): Promise<void> {
    try {
      for await (const message of this.#socket.messages()) {
        if (typeof message === "string") this.#hear(readMessage<FromOwner>(message));
        else this.#take(message);
        if (this.#isOver) break;
      }
    } catch {
      // The connection broke, which is reported below.
    }
    this.#end(`The host ${this.#host.host_id}, which has the room, no longer answers.`);
    this.#socket.cut();
  }

  #take(frame: Uint8Array): void {
    const read = readFrame(frame);
    const channel = read && this.#channels.get(read.channel);
    if (read && channel && !channel.push(read.stream, read.bytes)) this.#socket.cut();
  }

  #hear(message: FromOwner | null): void {
    if (message === null) {
      this.#socket.cut();
      return;
    }
    if (message.type === "welcome") this.#welcome.resolve({ org_id: message.org_id });
    else if (message.type === "not_welcome") this.#welcome.resolve({ problem: message.problem });
    else if (message.type === "over") this.#end(message.sentence);
    else this.#channels.get(message.channel)?.hear(message);
  }

  #end(sentence: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#welcome.reject(new ServiceError("host_unreachable", { detail: sentence }));
    for (const channel of [...this.#channels.values()]) channel.end(new SessionOver(sentence));
    this.#over.resolve(sentence);
  }
}

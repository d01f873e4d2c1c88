/** What a session or a forwarded port needs of the SSH connection that it belongs to. */
import type { ServerChannel } from "ssh2";
import type { Bound } from "../../core/operation.ts";
import type { Held, Ssh } from "../../domain/ssh/index.ts";
import type { Line } from "./line.ts";

export interface OpenConnection {
  readonly deps: { readonly ssh: Pick<Ssh, "verbs"> };
  readonly line: Line;
  /** What the session holds on to. Only for one that has logged in. */
  readonly held: Held;
  /** Whether it is over, or about to be. */
  readonly isOver: boolean;
  /** Count bytes of the session, in from the client and out to it. */
  readonly countIn: (bytes: number) => void;
  readonly countOut: (bytes: number) => void;
  /** Walks the road with an operation of the session; resolves to why it was refused, or null. */
  ask(bound: Bound, fields: Record<string, unknown>): Promise<string | null>;
  /** A channel whose unread bytes count; `leave` is called when it is over, or the connection is. */
  watch(opened: ServerChannel, leave: () => void): void;
  /** Logs what went wrong, and ends the connection. */
  trouble(error: unknown): void;
}

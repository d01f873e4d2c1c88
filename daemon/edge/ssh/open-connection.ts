/** What a session or a forwarded port needs of the SSH connection that it belongs to. */
import type { ServerChannel } from "ssh2";
import type { OrgId } from "../../../shared/ids.ts";
import type { Line } from "./line.ts";
import type { Opening } from "./opening.ts";

export interface OpenConnection {
  readonly line: Line;
  /** Organization of the user. */
  readonly orgId: OrgId;
  /** Why requests were refused that have no reason in their answer: the next session tells the client, once. */
  readonly notes: Set<string>;
  /** What may be opened. Only for one that has logged in. */
  readonly opening: Opening;
  /** Whether it is over, or about to be. */
  readonly isOver: boolean;
  /** Count bytes of the session, in from the client and out to it. */
  readonly countIn: (bytes: number) => void;
  readonly countOut: (bytes: number) => void;
  /** A channel whose unread bytes count; `leave` is called when it is over, or the connection is. */
  watch(opened: ServerChannel, leave: () => void): void;
  /** Logs why a command was lost, which its channel says itself. */
  lost(error: unknown): void;
  /** Logs what went wrong, and ends the connection. */
  trouble(error: unknown): void;
}

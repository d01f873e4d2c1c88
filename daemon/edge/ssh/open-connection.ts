/** The SSH connection, as its sessions and forwarded ports see it. */
import type { ServerChannel } from "ssh2";
import type { OrgId } from "../../../shared/ids.ts";
import type { Opening } from "./session-opening.ts";
import type { ConnectionBounds } from "./ssh2-bounds.ts";

export interface OpenConnection {
  readonly line: ConnectionBounds;
  /** Organization of the user. */
  readonly orgId: OrgId;
  /** Reasons of refusals for which the protocol has no field: the next session sends them to the client, once. */
  readonly notes: Set<string>;
  /** Opens commands and ports. Only after login. */
  readonly opening: Opening;
  /** Whether the connection is over, or about to be. */
  readonly isOver: boolean;
  /** Count bytes of the session: in from the client, and out to the client. */
  readonly countIn: (bytes: number) => void;
  readonly countOut: (bytes: number) => void;
  /** A channel with its unread bytes counted; `leave` is called at the end of the channel or connection. */
  watch(opened: ServerChannel, leave: () => void): void;
  /** Logs the reason why a command was lost, which its channel reports itself. */
  lost(error: unknown): void;
  /** Logs an error, and closes the connection. */
  trouble(error: unknown): void;
}

/** What a session of the SSH door may ask for, wherever its room is; on this host by visit.ts, on another by carried/entry.ts. */
import type { LiveCommand } from "../../host/guest-link/command.ts";
import type { GuestPort } from "../../host/guest-link/connect.ts";

export type Begun = "exec" | "shell" | "sftp";

export interface Opening {
  /** Begins what is given to `take`; resolves to why it was refused, or null. What was begun may be refused all the same. */
  begin(what: Begun, fields: Record<string, unknown>, take: (command: LiveCommand) => void): Promise<string | null>;
  /** Connects to a port of the guest; the same. */
  forward(fields: Record<string, unknown>, take: (port: GuestPort) => void): Promise<string | null>;
  /** Why a command has ended that nobody has ended, for the person at it. */
  whyLost(): string;
}

/** The session has ended, and why is for the person at it. */
export class SessionOver extends Error {
  override name = "SessionOver";
}

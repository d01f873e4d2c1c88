/**
 * The requests that a session of the SSH transport can make, on any host: implemented by session-context.ts for this host, by
 * forwarded/ingress.ts for another.
 */
import type { LiveCommand } from "../../host/guest-link/command.ts";
import type { GuestPort } from "../../host/guest-link/connect.ts";

export type SessionKind = "exec" | "shell" | "sftp";

export interface Opening {
  /** Starts a command and passes it to `take`; resolves to the reason of a refusal, or null. A started command may still be refused. */
  begin(
    kind: SessionKind,
    fields: Record<string, unknown>,
    take: (command: LiveCommand) => void,
  ): Promise<string | null>;
  /** Connects to a port of the guest; resolves as `begin`. */
  forward(fields: Record<string, unknown>, take: (port: GuestPort) => void): Promise<string | null>;
  /** The reason why a command has ended unexpectedly, for its user. */
  whyLost(): string;
}

/** The session has ended; the message is for the user. */
export class SessionOver extends Error {
  override name = "SessionOver";
}

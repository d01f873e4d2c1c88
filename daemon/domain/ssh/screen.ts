/** Owns commands on a screen of their own that end with their session: a terminal of the agent's, opened and attached to at once. */
import { newId } from "../../../shared/ids.ts";
import type { LiveCommand } from "../../host/guest-link/command.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { attachTerminal, closeTerminal, openTerminal } from "../../host/guest-link/terminal.ts";

/** What a person types to say that there is no more. */
const END_OF_INPUT = Uint8Array.of(4);

export interface Screen {
  term: string;
  rows: number;
  cols: number;
}

/** `argv` null is the login shell; `sit` says that somebody types at it. Rejects with StreamError when the agent refuses it. */
export async function openScreen(
  link: GuestLink,
  argv: string[] | null,
  env: Record<string, string>,
  screen: Screen,
  sit: (terminalId: string) => () => void,
): Promise<LiveCommand> {
  const terminal_id = newId("ter");
  await openTerminal(link, { terminal_id, argv, cwd: null, env, user: null, ...screen });
  const forget = () => void closeTerminal(link, terminal_id, false).catch(() => {});
  const attached = await attachTerminal(link, { terminal_id, since: 0, takeover: false }).catch((error: unknown) => {
    forget();
    throw error;
  });
  const leave = sit(terminal_id);
  attached.ended.then(leave, leave);
  // One that has ended is kept for who may come back; nobody will.
  attached.ended.then(forget, () => {});
  return {
    stdout: attached.output,
    stderr: null,
    write: attached.write,
    endInput: () => void attached.write(END_OF_INPUT),
    signal: attached.signal,
    resize: attached.resize,
    ended: attached.ended,
    hangUp: () => {
      attached.detach();
      forget();
    },
  };
}

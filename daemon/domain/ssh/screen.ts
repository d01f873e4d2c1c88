/** Commands with a pseudo-terminal that end with their session: a terminal of the agent, opened and attached immediately. */
import { newId } from "../../../shared/ids.ts";
import type { LiveCommand } from "../../host/guest-link/command.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { attachTerminal, closeTerminal, openTerminal } from "../../host/guest-link/terminal.ts";

/** The character by which a person ends input. */
const END_OF_INPUT = Uint8Array.of(4);

export interface Screen {
  term: string;
  rows: number;
  cols: number;
}

/** `argv` null is the login shell; `sit` registers a writer at it. Rejects with StreamError if the guest agent refuses it. */
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
  // An ended terminal is retained for clients that re-attach; this screen has no such clients.
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

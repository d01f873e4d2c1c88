/** Sandbox arguments of commands that accept both `ROOM AGENT` and `ROOM/AGENT`. */
import { CliError, EXIT } from "../../../kit/cli-error.ts";

/** Splits the words into the room, the optional agent and the remaining words. Throws CliError. */
export function sandboxWords([first = "", ...others]: readonly string[]): {
  room_id: string;
  agent: string | undefined;
  rest: string[];
} {
  const [room_id = "", ...after] = first.split("/");
  if (room_id === "" || after.length > 1 || after[0] === "") {
    throw new CliError(`${first}: must be ROOM AGENT or ROOM/AGENT.`, EXIT.usage);
  }
  const [agent, ...rest] = [...after, ...others];
  return { room_id, agent, rest };
}

/** How a sandbox is named by commands that take `ROOM AGENT` and also `ROOM/AGENT`. */
import { CliError, EXIT } from "../../../kit/cli-error.ts";

/** The room, the agent if one is named, and the words after them. Throws CliError. */
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

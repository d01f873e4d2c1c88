/** `room`: the command by which programs in the guest reach their room. It is this program under another name. */
import { Command, CommanderError } from "commander";
import { RoomError } from "./api.ts";
import { driveCommand } from "./drive.ts";
import { barrierCommand, messageCommands } from "./messages.ts";
import { ownCommands } from "./own.ts";

/** First argument by which the agent's program runs as the `room` command. */
export const ROOM_COMMAND = "room";

/** Returns the exit status: 0, 1 for a failure, 2 for invalid usage. */
export async function runRoom(args: string[]): Promise<number> {
  const program = new Command("room")
    .description("Reaches the room that this sandbox is in: its messages, barriers, agents and drive.")
    .exitOverride()
    .showHelpAfterError();
  for (const command of [...messageCommands(), barrierCommand(), ...ownCommands(), driveCommand()]) {
    program.addCommand(quiet(command));
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(`room: ${error instanceof RoomError ? error.message : String(error)}\n`);
    return 1;
  }
}

/** Every command takes --json, and none exits the process. */
function quiet(command: Command): Command {
  for (const each of command.commands) quiet(each);
  if (command.commands.length === 0) command.option("--json", "print the answer as JSON");
  return command.exitOverride();
}

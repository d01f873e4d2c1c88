/** The entry of the command line's client as an npm package: the binary's commands but for those of a service's host. */
import "./node-20.ts";
import { clientCommands, rootCommand } from "../client-commands.ts";
import { keyCommand } from "../key.ts";
import { runCommandLine } from "../run-command-line.ts";
import { templateCommand } from "../template.ts";

const status = await runCommandLine(process.argv.slice(2), (setStatus) =>
  rootCommand({ ...clientCommands(setStatus), "Templates and keys:": [templateCommand(), keyCommand()] }),
);
process.exit(status);

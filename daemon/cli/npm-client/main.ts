/** Entry of the npm package: the binary's commands except those that run on a service's host. */
import "./node-20.ts";
import { keyCommand } from "../commands/account/key.ts";
import { clientCommands, rootCommand } from "../commands/client-commands.ts";
import { templateCommand } from "../host/template.ts";
import { runCommandLine } from "../kit/run-command-line.ts";

const status = await runCommandLine(process.argv.slice(2), (setStatus) =>
  rootCommand({ ...clientCommands(setStatus), "Templates and keys:": [templateCommand(), keyCommand()] }),
);
process.exit(status);

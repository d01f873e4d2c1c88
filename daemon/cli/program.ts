/** The binary's command line: the client's commands and those of a service's host. */
import type { Command } from "commander";
import { backupCommand } from "./backup.ts";
import { clientCommands, rootCommand } from "./client-commands.ts";
import { clusterCommand } from "./cluster.ts";
import { configCommand } from "./config.ts";
import { doctorCommand } from "./doctor.ts";
import { hibernateCommand } from "./hibernate.ts";
import { initCommand } from "./init.ts";
import { keyCommand } from "./key.ts";
import { orgCommand } from "./org.ts";
import { restoreCommand } from "./restore.ts";
import { serveCommand } from "./serve.ts";
import { setupCommand } from "./setup.ts";
import { signupCommand } from "./signup.ts";
import { templateCommand } from "./template.ts";
import { uninstallCommand } from "./uninstall.ts";
import { upgradeCommand } from "./upgrade.ts";
import { userCommand } from "./user.ts";

/** The whole tree of commands; `setStatus` receives the exit status of outcomes that are no errors. */
export function makeProgram(setStatus: (status: number) => void): Command {
  return rootCommand({
    "The service, on its host:": [
      setupCommand(),
      serveCommand(),
      initCommand(),
      doctorCommand(setStatus),
      configCommand(),
      templateCommand(),
      orgCommand(),
      keyCommand(),
      userCommand(),
      signupCommand(),
      backupCommand(),
      restoreCommand(setStatus),
      hibernateCommand(setStatus),
      clusterCommand(),
      upgradeCommand(),
      uninstallCommand(),
    ],
    ...clientCommands(setStatus),
  });
}

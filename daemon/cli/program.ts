/** The binary's command line: client commands and commands that run on the service's host. */
import type { Command } from "commander";
import { keyCommand } from "./commands/account/key.ts";
import { orgCommand } from "./commands/account/org.ts";
import { signupCommand } from "./commands/account/signup.ts";
import { userCommand } from "./commands/account/user.ts";
import { clientCommands, rootCommand } from "./commands/client-commands.ts";
import { backupCommand } from "./host/backup.ts";
import { clusterCommand } from "./host/cluster.ts";
import { configCommand } from "./host/config.ts";
import { doctorCommand } from "./host/doctor.ts";
import { hibernateCommand } from "./host/hibernate.ts";
import { initCommand } from "./host/init.ts";
import { restoreCommand } from "./host/restore.ts";
import { serveCommand } from "./host/serve.ts";
import { setupCommand } from "./host/setup.ts";
import { templateCommand } from "./host/template.ts";
import { uninstallCommand } from "./host/uninstall.ts";
import { upgradeCommand } from "./host/upgrade.ts";

/** The complete command tree; `setStatus` receives the exit status of outcomes that are not errors. */
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

/** The commands that are clients of a service, by the headings of `roomd --help`. */
import type { Command } from "commander";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { agentCommand } from "./agent.ts";
import { applicationCommand } from "./application.ts";
import { auditCommand } from "./audit.ts";
import { barrierCommand } from "./barrier.ts";
import { browserCommand } from "./browser.ts";
import { checkpointCommand } from "./checkpoint.ts";
import { codeCommand } from "./code.ts";
import { commandGroup } from "./command.ts";
import { completionCommand } from "./completion.ts";
import { completionNamesCommand } from "./completion-names.ts";
import { cpCommand } from "./cp.ts";
import { creditsCommand } from "./credits.ts";
import { driveCommand } from "./drive.ts";
import { egressCommand } from "./egress.ts";
import { execCommand } from "./exec.ts";
import { executionCommand } from "./execution.ts";
import { sendCommand, waitCommand } from "./fabric.ts";
import { fileCommand } from "./file.ts";
import { loginCommand, logoutCommand } from "./login.ts";
import { logsCommand } from "./logs.ts";
import { lsCommand, psCommand, rmCommand } from "./ls.ts";
import { mcpCommand } from "./mcp.ts";
import { messageCommand } from "./message.ts";
import { openCommand } from "./open.ts";
import { portCommand } from "./port.ts";
import { promptCommand, skillsCommand } from "./prompt.ts";
import { recordingCommand } from "./recording.ts";
import { roomCommand } from "./room.ts";
import { runCommand } from "./run.ts";
import { sandboxCommand } from "./sandbox.ts";
import { computerCommand, screenCommand } from "./screen.ts";
import { healthCommand, limitsCommand, whoamiCommand } from "./service.ts";
import { shellCommand } from "./shell.ts";
import { snapshotCommand } from "./snapshot.ts";
import { sshAccessCommand } from "./ssh-access.ts";
import { sshConfigCommand } from "./ssh-config.ts";
import { sshKeyCommand } from "./ssh-key.ts";
import { terminalCommand } from "./terminal.ts";
import { timelineCommand } from "./timeline.ts";
import { topCommand } from "./top.ts";
import { usageCommand } from "./usage.ts";
import { waitsCommand } from "./waits.ts";
import { webhookCommand } from "./webhook.ts";

const ABOUT = {
  summary: "Rooms of sandboxes for groups of AI agents, on your own Linux host.",
  notes: [
    "Commands find the service by ROOMD_URL, else where `roomd login` has signed in, else by this host's configuration.",
    "They need ROOMD_API_KEY, or that you have signed in.",
    "AGENT is an agent_id, or for a sandbox also its sandbox_id. PLACE is ROOM:/path.",
    "ROOMD_CA_CERT names the only certificate file to trust; NODE_EXTRA_CA_CERTS adds one to the system's.",
    "",
    "Exit status: 0 done; 1 refused by the service or the host; 2 wrong command line or configuration.",
    "`roomd exec`, `roomd shell` and `roomd execution attach` exit with the command's own status, 124 on timeout, 128+n on signal n,",
    "125 when roomd failed.",
    "With --json errors are JSON too, on standard error.",
  ],
  examples: [
    "roomd doctor",
    "roomd room create build-42",
    "roomd sandbox create build-42 worker-1 --memory 512",
    "roomd exec build-42 worker-1 -- uname -a",
    "roomd cp report.txt build-42/worker-1:/root/",
    "roomd room destroy build-42",
  ],
};

/** `setStatus` receives the exit status of outcomes that are no errors. */
export function clientCommands(setStatus: (status: number) => void): Record<string, Command[]> {
  return {
    "Rooms and sandboxes:": [
      lsCommand(),
      psCommand(),
      rmCommand(),
      cpCommand(),
      roomCommand(),
      sandboxCommand(),
      topCommand(),
      openCommand(),
      egressCommand(setStatus),
      portCommand(),
      browserCommand(),
      logsCommand(),
      driveCommand(),
      fileCommand(),
    ],
    "Commands and terminals:": [
      runCommand(setStatus),
      execCommand(setStatus),
      executionCommand(setStatus),
      shellCommand(setStatus),
      terminalCommand(),
      screenCommand(),
      computerCommand(),
      recordingCommand(),
      snapshotCommand(),
      checkpointCommand(),
      sshConfigCommand(),
      codeCommand(),
      sshAccessCommand(),
      sshKeyCommand("ssh-key"),
    ],
    "Agents together:": [
      sendCommand(),
      waitCommand(),
      messageCommand(),
      agentCommand(),
      barrierCommand(),
      waitsCommand(),
      mcpCommand(),
      promptCommand(),
      skillsCommand(),
    ],
    "Audit, usage and limits:": [
      auditCommand(setStatus),
      timelineCommand(),
      webhookCommand(setStatus),
      applicationCommand(),
      usageCommand(),
      creditsCommand(),
      limitsCommand(),
      healthCommand(setStatus),
      loginCommand(),
      logoutCommand(),
      whoamiCommand(),
      completionCommand(),
    ],
  };
}

/** The program with its commands, by their headings. */
export function rootCommand(groups: Record<string, Command[]>): Command {
  const program = commandGroup("roomd", ABOUT).version(
    `roomd ${VERSION} (${COMMIT})`,
    "-V, --version",
    "print the version",
  );
  for (const [heading, commands] of Object.entries(groups)) {
    for (const each of commands) program.addCommand(each.helpGroup(heading));
  }
  program.addCommand(completionNamesCommand(), { hidden: true });
  return program;
}

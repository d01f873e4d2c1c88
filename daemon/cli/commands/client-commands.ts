/** Commands that are clients of a service, by the headings of `roomd --help`. */
import type { Command } from "commander";
import { COMMIT, VERSION } from "../../../shared/version.ts";
import { commandGroup } from "../kit/command.ts";
import { applicationCommand } from "./account/application.ts";
import { creditsCommand } from "./account/credits.ts";
import { loginCommand, logoutCommand } from "./account/login.ts";
import { sshAccessCommand } from "./account/ssh-access.ts";
import { sshConfigCommand } from "./account/ssh-config.ts";
import { sshKeyCommand } from "./account/ssh-key.ts";
import { usageCommand } from "./account/usage.ts";
import { webhookCommand } from "./account/webhook.ts";
import { auditCommand } from "./audit/audit.ts";
import { completionCommand } from "./completion.ts";
import { completionNamesCommand } from "./completion-names.ts";
import { cpCommand } from "./drive/cp.ts";
import { driveCommand } from "./drive/drive.ts";
import { lsCommand, psCommand, rmCommand } from "./drive/ls.ts";
import { execCommand } from "./exec/exec.ts";
import { executionCommand } from "./exec/execution.ts";
import { mcpCommand } from "./mcp.ts";
import { openCommand } from "./open.ts";
import { promptCommand, skillsCommand } from "./prompt.ts";
import { agentCommand } from "./room/agent.ts";
import { barrierCommand } from "./room/barrier.ts";
import { checkpointCommand } from "./room/checkpoint.ts";
import { sendCommand, waitCommand } from "./room/fabric.ts";
import { messageCommand } from "./room/message.ts";
import { roomCommand } from "./room/room.ts";
import { timelineCommand } from "./room/timeline.ts";
import { waitsCommand } from "./room/waits.ts";
import { browserCommand } from "./sandbox/browser.ts";
import { codeCommand } from "./sandbox/code.ts";
import { egressCommand } from "./sandbox/egress.ts";
import { fileCommand } from "./sandbox/file.ts";
import { logsCommand } from "./sandbox/logs.ts";
import { portCommand } from "./sandbox/port.ts";
import { recordingCommand } from "./sandbox/recording.ts";
import { runCommand } from "./sandbox/run.ts";
import { sandboxCommand } from "./sandbox/sandbox.ts";
import { computerCommand, screenCommand } from "./sandbox/screen.ts";
import { snapshotCommand } from "./sandbox/snapshot.ts";
import { terminalCommand } from "./sandbox/terminal.ts";
import { healthCommand, limitsCommand, whoamiCommand } from "./service.ts";
import { shellCommand } from "./shell/shell.ts";
import { topCommand } from "./top/top.ts";

const ABOUT = {
  summary: "Rooms of sandboxes for groups of AI agents, on your own Linux host.",
  notes: [
    "Commands find the service by ROOMD_URL, else by the sign-in of `roomd login`, else by this host's configuration.",
    "They need ROOMD_API_KEY or a sign-in.",
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

/** `setStatus` receives the exit status of outcomes that are not errors. */
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

/** The root command with the given commands, grouped by heading. */
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

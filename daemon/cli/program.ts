/** Owns the command line: its commands, and how every outcome becomes an exit status. */
import { type Command, CommanderError } from "commander";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { agentCommand } from "./agent.ts";
import { auditCommand } from "./audit.ts";
import { backupCommand } from "./backup.ts";
import { barrierCommand } from "./barrier.ts";
import { browserCommand } from "./browser.ts";
import { checkpointCommand } from "./checkpoint.ts";
import { CliError, EXIT, toCliError } from "./cli-error.ts";
import { clusterCommand } from "./cluster.ts";
import { commandGroup, JSON_FLAG } from "./command.ts";
import { completionCommand } from "./completion.ts";
import { configCommand } from "./config.ts";
import { creditsCommand } from "./credits.ts";
import { doctorCommand } from "./doctor.ts";
import { driveCommand } from "./drive.ts";
import { egressCommand } from "./egress.ts";
import { execCommand } from "./exec.ts";
import { executionCommand } from "./execution.ts";
import { sendCommand, waitCommand } from "./fabric.ts";
import { hibernateCommand } from "./hibernate.ts";
import { initCommand } from "./init.ts";
import { keyCommand } from "./key.ts";
import { loginCommand, logoutCommand } from "./login.ts";
import { logsCommand } from "./logs.ts";
import { mcpCommand } from "./mcp.ts";
import { messageCommand } from "./message.ts";
import { openCommand } from "./open.ts";
import { orgCommand } from "./org.ts";
import { showError, write } from "./output.ts";
import { portCommand } from "./port.ts";
import { promptCommand, skillsCommand } from "./prompt.ts";
import { recordingCommand } from "./recording.ts";
import { restoreCommand } from "./restore.ts";
import { roomCommand } from "./room.ts";
import { sandboxCommand } from "./sandbox.ts";
import { computerCommand, screenCommand } from "./screen.ts";
import { serveCommand } from "./serve.ts";
import { healthCommand, limitsCommand, whoamiCommand } from "./service.ts";
import { setupCommand } from "./setup.ts";
import { shellCommand } from "./shell.ts";
import { signupCommand } from "./signup.ts";
import { snapshotCommand } from "./snapshot.ts";
import { sshAccessCommand } from "./ssh-access.ts";
import { templateCommand } from "./template.ts";
import { terminalCommand } from "./terminal.ts";
import { timelineCommand } from "./timeline.ts";
import { topCommand } from "./top.ts";
import { uninstallCommand } from "./uninstall.ts";
import { upgradeCommand } from "./upgrade.ts";
import { usageCommand } from "./usage.ts";
import { userCommand } from "./user.ts";
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
    "roomd drive put report.txt build-42:/report.txt",
    "roomd room destroy build-42",
  ],
};

/** What exits with a command's own status: that of a failure of roomd's is another than any command has by custom. */
const RUNS = [["exec"], ["shell"], ["execution", "attach"]];

/** The whole tree of commands; `setStatus` is told of outcomes that are no errors. */
export function makeProgram(setStatus: (status: number) => void): Command {
  const program = commandGroup("roomd", ABOUT).version(
    `roomd ${VERSION} (${COMMIT})`,
    "-V, --version",
    "print the version",
  );
  const groups: Record<string, Command[]> = {
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
    "Rooms and sandboxes:": [
      roomCommand(),
      sandboxCommand(),
      topCommand(),
      openCommand(),
      egressCommand(),
      portCommand(),
      browserCommand(),
      logsCommand(),
      driveCommand(),
    ],
    "Commands and terminals:": [
      execCommand(setStatus),
      executionCommand(setStatus),
      shellCommand(setStatus),
      terminalCommand(),
      screenCommand(),
      computerCommand(),
      recordingCommand(),
      snapshotCommand(),
      checkpointCommand(),
      sshAccessCommand(),
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
  for (const [heading, commands] of Object.entries(groups)) {
    for (const each of commands) program.addCommand(each.helpGroup(heading));
  }
  return program;
}

/** Runs one command line, without the program's name; resolves with its exit status and never rejects. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  let status: number = EXIT.ok;
  const program = makeProgram((given) => {
    status = given;
  });
  // A reader that has seen enough (`| head`) is no error.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => process.exit(EXIT.ok));
  try {
    // `roomd help room create` asks what `roomd room create --help` does.
    await program.parseAsync(args[0] === "help" ? [...args.slice(1), "--help"] : args, { from: "user" });
  } catch (error) {
    status = await failed(error, args);
  }
  await Promise.all([write(process.stdout, ""), write(process.stderr, "")]);
  return status;
}

async function failed(error: unknown, args: readonly string[]): Promise<number> {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
  // Of a noun without a verb commander has printed the help.
  if (error instanceof CommanderError && error.code.startsWith("commander.help")) return EXIT.usage;
  const isExec = RUNS.some((words) => words.every((word, at) => args[at] === word));
  const known = error instanceof CommanderError ? usageError(error) : toCliError(error);
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  await showError(known, own.includes(JSON_FLAG));
  return isExec ? EXIT.roomd : known.status;
}

/** What commander says of a command line, with the word that was probably meant. */
function usageError({ message }: CommanderError): CliError {
  const [detail = "", ...meant] = message.replace(/^error: /, "").split("\n");
  const hint = [...meant.map((line) => line.replace(/^\((.*)\)$/, "$1")), "Run it with --help to see what it takes."];
  return new CliError({ detail, errors: [], hint: hint.join(" ") }, EXIT.usage);
}

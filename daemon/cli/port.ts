/** Owns `roomd port`: servers in a sandbox that are reached by URL. */
import type { Command } from "commander";
import { type PortRecord, portList, sandboxExposePort, sandboxUnexposePort } from "../../shared/api/ports.ts";
import { CliError } from "./cli-error.ts";
import { call } from "./client.ts";
import { command, commandGroup } from "./command.ts";
import { bytesText, type JsonOption, show, table } from "./output.ts";
import { integer, milliseconds, seconds } from "./values.ts";

export function portCommand(): Command {
  return commandGroup("port", {
    summary: "ports of a sandbox that are reached by URL",
    examples: ["roomd port expose build-42 worker-1 8000", "roomd port list build-42 worker-1"],
  })
    .addCommand(expose())
    .addCommand(list())
    .addCommand(unexpose());
}

interface ExposeOptions extends JsonOption {
  public?: true;
  label?: string;
  expiresIn?: number;
  wait?: number | true;
}

const USUAL_WAIT_MS = 30_000;

function expose(): Command {
  return command("expose <room> <agent>", {
    summary: "expose a port; print its URL and its token",
    examples: [
      "roomd port expose build-42 worker-1 8000",
      "roomd port expose build-42 worker-1 8000 --public --label web --expires-in 2h",
      "roomd port expose build-42 worker-1 8000 --wait 20s",
    ],
  })
    .argument("<port>", "the number that the server in the sandbox listens on", integer(1))
    .option("--public", "let in whoever has the URL; otherwise the token is needed too")
    .option("--label <name>", "what the URL's label begins with")
    .option("--expires-in <time>", "unexpose it after this time", seconds)
    .option("--wait [time]", "wait until a server listens on the port: 30s by default, at most 50s", milliseconds)
    .action(async (room_id: string, sandbox: string, port: number, options: ExposeOptions) => {
      const { wait } = options;
      const wait_ms = wait === true ? USUAL_WAIT_MS : wait;
      const reply = await call(sandboxExposePort, {
        room_id,
        sandbox,
        port,
        visibility: options.public ? "public" : undefined,
        label: options.label,
        expires_in_seconds: options.expiresIn,
        wait_ms,
      });
      await show(reply, options, lines);
      if (wait_ms !== undefined && !reply.value.listening) {
        throw new CliError(`No server listened on port ${port} within ${wait_ms / 1000} s. The port stays exposed.`);
      }
    });
}

function lines({ url, path_url, token, listening, port, expires_at }: PortRecord): string[] {
  return [
    url,
    ...(path_url === url ? [] : [path_url]),
    ...(token === null ? [] : [`token  ${token}`, `try    curl -H 'X-Port-Token: ${token}' ${path_url}`]),
    ...(expires_at === null ? [] : [`until  ${expires_at}`]),
    ...(listening ? [] : [`Nothing listens on port ${port} of the sandbox yet.`]),
  ];
}

function list(): Command {
  return command("list <room> <agent>", {
    summary: "list a sandbox's exposed ports with their tokens",
    examples: ["roomd port list build-42 worker-1"],
  }).action(async (room_id: string, sandbox: string, options: JsonOption) => {
    const reply = await call(portList, { room_id, sandbox });
    await show(reply, options, ({ items }) =>
      table(
        ["PORT", "VISIBILITY", "LISTENING", "CALLS", "SENT", "RECEIVED", "URL", "TOKEN", "EXPIRES"],
        items.map((each) => [
          each.port,
          each.visibility,
          each.listening ? "yes" : "no",
          each.traffic.connections,
          bytesText(each.traffic.sent_bytes),
          bytesText(each.traffic.received_bytes),
          each.url,
          each.token,
          each.expires_at,
        ]),
      ),
    );
  });
}

function unexpose(): Command {
  return command("unexpose <room> <agent>", {
    summary: "unexpose a port; its open connections are closed",
    examples: ["roomd port unexpose build-42 worker-1 8000"],
  })
    .argument("<port>", "its number", integer(1))
    .action(async (room_id: string, sandbox: string, port: number, options: JsonOption) => {
      const reply = await call(sandboxUnexposePort, { room_id, sandbox, port });
      await show(reply, options, () => [`port ${port} is no longer exposed`]);
    });
}

/** `roomd port`: servers in a sandbox that are reached by URL. */

import type { Command } from "commander";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { type PortRecord, portList, sandboxExposePort, sandboxUnexposePort } from "../../../../shared/api/ports.ts";
import { sandboxList } from "../../../../shared/api/sandboxes.ts";
import { CliError } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { bytesText, type JsonOption, show, showValue, table } from "../../kit/output.ts";
import { integer, milliseconds, seconds } from "../../kit/values.ts";
import { verb } from "../../kit/verb.ts";

export function portCommand(): Command {
  return commandGroup("port", {
    summary: "ports of a sandbox that are reached by URL",
    examples: ["roomd port expose build-42 worker-1 8000", "roomd port list build-42 worker-1"],
  })
    .addCommand(expose())
    .addCommand(list())
    .addCommand(
      verb(sandboxUnexposePort, "unexpose <room> <agent>", "unexpose a port; its open connections are closed", {
        examples: ["roomd port unexpose build-42 worker-1 8000"],
        args: [["<port>", "its number", integer(1)]],
        lines: (_, { port }) => [`port ${port} is no longer exposed`],
      }),
    );
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
    .argument("<port>", "number of the port that the server in the sandbox listens on", integer(1))
    .option("--public", "the URL alone gives access; otherwise the token is needed too")
    .option("--label <name>", "prefix of the URL's label")
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
  return command("list <room> [agent]", {
    summary: "list a sandbox's exposed ports with their tokens, or those of all sandboxes of a room",
    examples: ["roomd port list build-42 worker-1", "roomd port list build-42"],
  }).action(async (room_id: string, agent: string | undefined, options: JsonOption) => {
    if (agent !== undefined) {
      const reply = await call(portList, { room_id, sandbox: agent });
      return await show(reply, options, ({ items }) => table(COLUMNS, items.map(cellsOf)));
    }
    const ports: (PortItem & { agent_id: string })[] = [];
    // Sequential: a room has up to hundreds of sandboxes.
    for (const agent_id of await agentsOf(room_id)) {
      const { items } = (await call(portList, { room_id, sandbox: agent_id })).value;
      ports.push(...items.map((port) => ({ agent_id, ...port })));
    }
    await showValue({ items: ports }, options, ({ items }) =>
      table(
        ["AGENT", ...COLUMNS],
        items.map((port) => [port.agent_id, ...cellsOf(port)]),
      ),
    );
  });
}

type PortItem = OutputOf<typeof portList>["items"][number];

async function agentsOf(room_id: string): Promise<string[]> {
  const agents: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const { items, next_cursor } = (await call(sandboxList, { room_id, cursor })).value;
    agents.push(...items.map(({ agent_id }) => agent_id));
    if (next_cursor === null) return agents;
    cursor = next_cursor;
  }
}

const COLUMNS = ["PORT", "VISIBILITY", "LISTENING", "CALLS", "SENT", "RECEIVED", "URL", "TOKEN", "EXPIRES"];

const cellsOf = ({ traffic, ...port }: PortItem) => [
  port.port,
  port.visibility,
  port.listening ? "yes" : "no",
  traffic.connections,
  bytesText(traffic.sent_bytes),
  bytesText(traffic.received_bytes),
  port.url,
  port.token,
  port.expires_at,
];

/** MCP messages that are refused: an unknown tool, and 1 MiB of empty arrays. */
import { type Attack, call, keepCalling } from "../../harness/hostile/attack.ts";

const LANES = 30;
const ACCEPT = { accept: "application/json, text/event-stream" };

const toolCall = (name: string, args: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`;

export default {
  title: "30 connections that call an unknown MCP tool, and one with 1 MiB of empty arrays",
  mostP99Ms: 15,
  attack: async (target, count) => {
    const arrays = `{"payload":[${"[],".repeat(1024 * 340)}[]]}`;
    const bodies = [toolCall("nothing", "{}"), toolCall("agent_send", arrays)];
    await keepCalling(LANES, count, (n) => call(target, "POST", "/mcp/key", bodies[n % 2] ?? "", ACCEPT));
  },
} satisfies Attack;

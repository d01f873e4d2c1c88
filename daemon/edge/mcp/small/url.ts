/** The MCP tool `url` of the small set: a port of the sandbox, reachable by a link that opens it. */
import { operations } from "../../../../shared/api/operations.ts";
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";
import { inPlace, type PlaceInput, placeOf } from "./place.ts";

export async function url(call: ToolCall, { port, ...location }: PlaceInput & { port: number }): Promise<ToolAnswer> {
  const place = placeOf(call, location);
  return await inPlace(call, place, async () => {
    const reply = await call.ask(operations.sandbox_expose_port, { ...place, port });
    if (reply.kind === "late") return stillUnderWay(call);
    if (reply.kind === "problem") return answerOf(reply);
    const { url: base, token, listening } = reply.body;
    const link = token ? `${base}${String(base).includes("?") ? "&" : "?"}port_token=${token}` : String(base);
    const note = listening === false ? `\nNothing listens on port ${port} yet: start the server.` : "";
    return { ok: true, result: { port, url: link, listening }, text: `${link}${note}` };
  });
}

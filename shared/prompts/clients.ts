/** Owns how each usual client of MCP is told of this service: a line for a shell, or what to put into a file. */

export interface ClientWay {
  client: string;
  /** Where it goes. */
  into: string;
  text: string;
  /** A link that opens the client and says the same; it carries no key. */
  opens?: string;
}

const NAME = "roomd";

/** `url`: the service's, without a slash at its end. All of these sign in by the browser. */
export function clientWays(url: string): ClientWay[] {
  const mcp = `${url}/mcp`;
  const inFile = (server: object, key = "mcpServers") => JSON.stringify({ [key]: { [NAME]: server } }, null, 2);
  const vsCode = JSON.stringify({ name: NAME, type: "http", url: mcp });
  const cursor = Buffer.from(JSON.stringify({ url: mcp })).toString("base64");
  return [
    { client: "Claude Code", into: "a shell; then /mcp", text: `claude mcp add --transport http ${NAME} ${mcp}` },
    { client: "Codex", into: "a shell", text: `codex mcp add ${NAME} --url ${mcp} && codex mcp login ${NAME}` },
    {
      client: "VS Code",
      into: "a shell",
      text: `code --add-mcp '${vsCode}'`,
      opens: `vscode:mcp/install?${encodeURIComponent(vsCode)}`,
    },
    {
      client: "Cursor",
      into: "mcp.json",
      text: inFile({ url: mcp }),
      opens: `cursor://anysphere.cursor-deeplink/mcp/install?name=${NAME}&config=${encodeURIComponent(cursor)}`,
    },
    { client: "Gemini CLI", into: "settings.json", text: inFile({ httpUrl: mcp }) },
    { client: "opencode", into: "opencode.json", text: inFile({ type: "remote", url: mcp }, "mcp") },
  ];
}

/** Configuration of common MCP clients for this service, in both variants: sign-in by the browser, or an API key. */

/** Text for a shell or a file. */
interface ClientText {
  into: string;
  text: string;
}

export interface ClientWay {
  client: string;
  signsIn: ClientText;
  /** The key is in the environment, or requested interactively: no text here contains one. */
  hasKey: ClientText;
  /** A link that opens the client with the first variant. */
  opens?: string;
}

/** The client's name for it; different from the command's, so that the two are not confused. */
const NAME = "rooms";
const KEY = "ROOMD_API_KEY";
const SHELL = "a shell";

/** `url`: the service's URL, without a trailing slash. */
export function clientWays(url: string): ClientWay[] {
  const mcp = `${url}/mcp`;
  const byKey = `${url}/mcp/key`;
  const json = (value: object) => JSON.stringify(value, null, 2);
  const bearer = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });
  const inFile = (server: object) => json({ mcpServers: { [NAME]: server } });
  const vsCode = JSON.stringify({ name: NAME, type: "http", url: mcp });
  const cursor = btoa(JSON.stringify({ url: mcp }));
  return [
    {
      client: "Claude Code",
      signsIn: { into: `${SHELL}, then /mcp into the client`, text: `claude mcp add --transport http ${NAME} ${mcp}` },
      hasKey: {
        into: SHELL,
        text: `claude mcp add --transport http ${NAME} ${byKey} --header "Authorization: Bearer $${KEY}"`,
      },
    },
    {
      client: "Codex",
      signsIn: { into: SHELL, text: `codex mcp add ${NAME} --url ${mcp} && codex mcp login ${NAME}` },
      hasKey: { into: SHELL, text: `codex mcp add ${NAME} --url ${byKey} --bearer-token-env-var ${KEY}` },
    },
    {
      client: "VS Code",
      signsIn: { into: SHELL, text: `code --add-mcp '${vsCode}'` },
      hasKey: {
        into: "mcp.json",
        text: json({
          servers: { [NAME]: { type: "http", url: byKey, ...bearer(`\${input:key}`) } },
          inputs: [{ type: "promptString", id: "key", description: "roomd API key", password: true }],
        }),
      },
      opens: `vscode:mcp/install?${encodeURIComponent(vsCode)}`,
    },
    {
      client: "Cursor",
      signsIn: { into: "mcp.json", text: inFile({ url: mcp }) },
      hasKey: { into: "mcp.json", text: inFile({ url: byKey, ...bearer(`\${env:${KEY}}`) }) },
      opens: `cursor://anysphere.cursor-deeplink/mcp/install?name=${NAME}&config=${encodeURIComponent(cursor)}`,
    },
    {
      client: "Gemini CLI",
      signsIn: { into: "settings.json", text: inFile({ httpUrl: mcp }) },
      hasKey: { into: "settings.json", text: inFile({ httpUrl: byKey, ...bearer(`$${KEY}`) }) },
    },
    {
      client: "opencode",
      signsIn: { into: "opencode.json", text: json({ mcp: { [NAME]: { type: "remote", url: mcp } } }) },
      hasKey: {
        into: "opencode.json",
        text: json({ mcp: { [NAME]: { type: "remote", url: byKey, ...bearer(`{env:${KEY}}`) } } }),
      },
    },
  ];
}

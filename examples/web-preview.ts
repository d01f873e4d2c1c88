/** Web preview: an agent's page is served in a sandbox, and reached from outside by a URL with a token. */
import { Sandbox } from "roomd-sdk";

await using sandbox = await Sandbox.create({ egress: [] });
await sandbox.files.write("/root/site/index.html", "<h1>Made in a sandbox</h1>\n");
await sandbox.start(["python3", "-m", "http.server", "3000", "--bind", "127.0.0.1", "--directory", "/root/site"]);

const { url, token } = await sandbox.exposePort(3000, { wait: true });
console.log("open in a browser:", `${url}?port_token=…`);
const page = await fetch(url, { headers: { "x-port-token": String(token) } });
console.log(page.status, (await page.text()).trim());

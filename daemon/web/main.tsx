/** The hub: an application that shows what is in an organization's rooms, and can change nothing. It begins here. */
import { render } from "preact";
import { App } from "./shell/app.tsx";
import { listenToKeys } from "./shell/keys.tsx";
import { listenToLinks } from "./shell/router.ts";
import { startTheme } from "./shell/theme.ts";

const main = document.getElementById("main");
if (main) {
  startTheme();
  listenToLinks();
  listenToKeys();
  main.replaceChildren();
  render(<App />, main);
}

/** The hub: an application that shows an organization's rooms, and can change nothing. This is its entry point. */
import { render } from "preact";
import { App } from "./shell/app.tsx";
import { listenToKeys } from "./shell/keys.tsx";
import { startChoices } from "./shell/preferences.ts";
import { listenToLinks } from "./shell/router.ts";

const main = document.getElementById("main");
if (main) {
  startChoices();
  listenToLinks();
  listenToKeys();
  main.replaceChildren();
  render(<App />, main);
}

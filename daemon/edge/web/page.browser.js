// Additions to pages that work without script: the token of a link from behind the #, copying, passkeys, errors beside their
// fields, and the rail's choice of colours and keys, as the hub has them.

const token = document.querySelector("form[data-token] input[name=token]");
if (token && location.hash.length > 1) {
  token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  token.form.requestSubmit();
}
// A new link may be pasted into a tab that shows the page of an old one: only the part behind the # is another then.
addEventListener("hashchange", () => {
  if (document.body.classList.contains("outside") && location.hash.length > 1) location.reload();
});
const returned = document.querySelector("form[data-go]");
if (returned) {
  history.replaceState(null, "", location.pathname);
  returned.requestSubmit();
}
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    document.querySelector(".said").textContent = "Copied.";
    button.textContent = "Copied";
  });
}

const WHY = {
  InvalidStateError: "This device already has a passkey for this account.",
  NotAllowedError: "The passkey request was cancelled or timed out. Try again.",
  SecurityError: "Passkeys are not available at this address.",
};
const kept = globalThis.PublicKeyCredential;

/** What the form says of the person goes into a passkey that is made. */
async function askPasskey({ dataset, form }) {
  const options = JSON.parse(dataset.options);
  if (dataset.passkey === "use") {
    return await navigator.credentials.get({ publicKey: kept.parseRequestOptionsFromJSON(options) });
  }
  options.user.name ||= form.elements.email.value;
  options.user.displayName ||= form.elements.name.value;
  return await navigator.credentials.create({ publicKey: kept.parseCreationOptionsFromJSON(options) });
}

/** Beside the button, where whoever pressed it looks. */
function refuse(button, text) {
  const said = button.form.querySelector("[role=alert]") ?? document.createElement("p");
  said.setAttribute("role", "alert");
  said.className = "trouble";
  said.textContent = text;
  button.after(said);
}

for (const button of document.querySelectorAll("button[data-passkey]")) {
  button.hidden = !kept?.parseCreationOptionsFromJSON;
  button.addEventListener("click", async () => {
    const { form } = button;
    const passwords = [...form.querySelectorAll("input[type=password]")];
    const need = (isNeeded) => {
      for (const each of passwords) each.required = isNeeded;
    };
    need(false);
    try {
      if (!form.reportValidity()) return;
      form.elements[button.dataset.as].value = JSON.stringify(await askPasskey(button));
      form.requestSubmit();
    } catch (error) {
      refuse(button, WHY[error.name] ?? "The browser returned no passkey.");
    } finally {
      need(true);
    }
  });
}

// Each error is shown at its field, and the first of these fields has the focus.
const wrong = [...document.querySelectorAll(".trouble li[data-field]")].flatMap((item) => {
  const input = document.getElementById(item.dataset.field);
  if (!input) return [];
  const text = document.createElement("small");
  text.id = `${input.id}-wrong`;
  text.className = "wrong";
  text.textContent = item.textContent;
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-describedby", [input.getAttribute("aria-describedby"), text.id].filter(Boolean).join(" "));
  input.after(text);
  item.remove();
  return [input];
});
if (wrong.length > 0) {
  for (const list of document.querySelectorAll(".trouble ul:empty")) list.remove();
  for (const each of document.querySelectorAll("[autofocus]")) each.autofocus = false;
  wrong[0].focus();
}
for (const input of document.querySelectorAll("input[type=password]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link shows-password";
  button.textContent = "Show password";
  button.setAttribute("aria-controls", input.id);
  button.addEventListener("click", () => {
    const isShown = input.type === "text";
    input.type = isShown ? "password" : "text";
    button.textContent = isShown ? "Show password" : "Hide password";
  });
  input.after(button);
}

const rail = document.querySelector("nav .foot");
if (rail) {
  const COLOURS = ["system", "light", "dark"];
  const root = document.documentElement;
  const button = document.createElement("button");
  const show = () => {
    button.textContent = `Colours: ${root.dataset.colours ?? "system"}`;
  };
  button.type = "button";
  button.className = "link choice-of-browser";
  button.addEventListener("click", () => {
    const next = COLOURS[(COLOURS.indexOf(root.dataset.colours ?? "system") + 1) % COLOURS.length];
    // biome-ignore lint/suspicious/noDocumentCookie: the server reads it for the next page, and not all browsers have a cookie store.
    document.cookie = `roomd-colours=${next}; Path=/; Max-Age=34560000; SameSite=Lax`;
    root.dataset.colours = next;
    show();
  });
  show();
  rail.append(button);

  const WAYS = { h: "/", r: "/rooms", a: "/audit", u: "/usage", p: "/prompts", k: "/account/keys" };
  const PAIR_MS = 1500;
  let firstAt = Number.NEGATIVE_INFINITY;
  addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.metaKey || event.ctrlKey || event.altKey || target.closest("input, textarea, select")) return;
    const isSecond = performance.now() - firstAt < PAIR_MS;
    firstAt = key === "g" ? performance.now() : Number.NEGATIVE_INFINITY;
    if (isSecond && WAYS[key]) location.assign(WAYS[key]);
  });
}

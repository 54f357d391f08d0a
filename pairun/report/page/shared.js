"use strict";
// For every page. Text from a job is only ever set as text, never as HTML.

const make = (tag, { classes = "", text, ...attributes } = {}, ...children) => {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child));
  return element;
};

const makeButton = (text, label, act) => {
  const button = make("button", { type: "button", text, "aria-label": label });
  button.addEventListener("click", act);
  return button;
};

const themeButton = () => makeButton("◐", "Switch between light and dark", () => {
  const dark = getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});


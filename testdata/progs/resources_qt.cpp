// SPDX-License-Identifier: Apache-2.0
/*
 * resources_qt: makes objects of Qt in all places, and prints what module qobject records. See
 * resources.h.
 */
#include "resources.h"
#include <QObject>
#include <QThread>
#include <QTimer>
#include <memory>

namespace
{

void made(const void *object)
{
	allocated("QObject::QObject", "qobject", (uintptr_t)object, 1, "");
}

void gone(const void *object)
{
	freed("QObject::~QObject", "qobject", (uintptr_t)object);
}

/* An object with a member that is an object as well. */
class Outer : public QObject
{
public:
	explicit Outer(QObject *parent = nullptr) : QObject(parent)
	{
		made(this);
		made(&inner);
	}
	~Outer() override
	{
		gone(&inner);
		gone(this);
	}

private:
	QObject inner;
};

/* The same address again, with other constructors: of the program, and of Qt itself. */
void again()
{
	alignas(QTimer) char room[sizeof(QTimer)];

	for (int i = 0; i < 3; i++) {
		auto *o = new (room) QObject;

		made(o);
		o->~QObject();
		gone(o);
		auto *t = new (room) QTimer;
		made(t);
		t->~QTimer();
		gone(t);
	}
}

void family()
{
	auto *parent = new QObject;
	made(parent);
	auto *first = new QObject(parent), *second = new QObject(parent);
	made(first);
	made(second);
	/* The parent's destructor deletes its children. */
	gone(parent);
	gone(first);
	gone(second);
	delete parent;
}

} // namespace

int main()
{
	{
		QObject local;

		made(&local);
		made(QThread::currentThread()); /* made by Qt, for the first object of a thread */
		gone(&local);
	}
	{
		Outer outer;
	}
	std::unique_ptr<QObject> deleted(new Outer);
	deleted.reset();
	auto *timer = new QTimer;
	made(timer);
	gone(timer);
	delete timer;
	again();
	family();
	made(new QObject); /* remains */
	tell();
	_exit(0); /* what Qt destroys is not recorded */
}
